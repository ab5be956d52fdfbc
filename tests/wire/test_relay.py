"""What bridges say: two shapes, and everything else is counted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import light_json
from holdfast.wire.relay import read_message

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
frames = st.fixed_dictionaries(
    {},
    optional={
        "_bus_relay": st.just(True) | values,
        "topic": st.sampled_from(["a", "a.b", "", "a b", "*"]) | values,
        "envelope": st.dictionaries(st.sampled_from(["type", "ts", "seq", "x"]), values) | values,
        "jsonrpc": st.just("2.0") | values,
        "method": st.just("event") | values,
        "params": st.dictionaries(st.sampled_from(["type", "session_id", "payload"]), values) | values,
        "bridge": st.text(max_size=70) | values,
        "n": st.integers() | values,
    },
)


def test_a_relayed_event_stays_as_it_is() -> None:
    envelope = {"type": "a.b", "ts": 1.5, "src": "there", "x": [1], "seq": 9}
    taken = read_message(json.dumps({"_bus_relay": True, "topic": "a.b", "envelope": envelope}), 5.0)
    assert taken.events[0].envelope() == {"type": "a.b", "ts": 1.5, "src": "there", "x": [1]}
    assert (taken.ignored, taken.marks) == (0, {})


def test_a_call_becomes_a_topic_of_its_own() -> None:
    params = {"type": "key.down", "session_id": "s", "payload": {"key": "x", "session_id": "other"}}
    taken = read_message(json.dumps({"jsonrpc": "2.0", "method": "event", "params": params}), 5.0)
    assert taken.events[0].envelope() == {
        "type": "tui.key.down",
        "ts": 5.0,
        "src": "tui",
        "key": "x",
        "session_id": "s",
    }


@pytest.mark.parametrize(
    ("params", "fields"),
    [
        ({"type": "x"}, {"session_id": None}),
        ({"type": "x", "session_id": "s", "payload": None}, {"session_id": "s"}),
        ({"type": "x", "session_id": "s", "payload": "text"}, {"session_id": "s"}),
        ({"type": "x", "session_id": "s", "payload": [1]}, {"session_id": "s"}),
        ({"type": "x", "payload": {"session_id": "p"}}, {"session_id": "p"}),
        ({"type": "x", "session_id": 7, "payload": {"type": "y", "ts": "soon", "src": 3}}, {"session_id": 7}),
        ({"type": "x", "extra": 1, "payload": {"k": 1, "ts": 2.5}}, {"session_id": None, "k": 1, "ts": 2.5}),
    ],
)
def test_a_call_is_accepted_with_any_payload(params: dict[str, Any], fields: dict[str, Any]) -> None:
    frame = {"jsonrpc": "2.0", "method": "event", "id": 1, "n": "odd", "bridge": 5, "params": params}
    taken = read_message(json.dumps(frame), 5.0)
    assert taken.ignored == 0
    assert taken.events[0].envelope() == {"type": "tui.x", "ts": 5.0, "src": "tui", **fields}


@pytest.mark.parametrize(
    "frame",
    [
        {"jsonrpc": "2.0", "method": "event"},
        {"jsonrpc": "2.0", "method": "event", "params": []},
        {"jsonrpc": "2.0", "method": "event", "params": {"payload": {}}},
        {"jsonrpc": "2.0", "method": "event", "params": {"type": ""}},
        {"jsonrpc": "2.0", "method": "event", "params": {"type": 5}},
        {"jsonrpc": "2.0", "method": "other", "params": {"type": "x"}},
        {"jsonrpc": "1.0", "method": "event", "params": {"type": "x"}},
        {"method": "event", "params": {"type": "x"}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        7,
        None,
    ],
)
def test_any_other_frame_is_ignored_and_counted(frame: object) -> None:
    assert read_message(json.dumps(frame), 5.0) == ([], 1, {})


def test_a_message_of_many_frames() -> None:
    relay: dict[str, Any] = {"_bus_relay": True, "topic": "a", "envelope": {}, "bridge": "b"}
    taken = read_message(json.dumps([{**relay, "n": 4}, {**relay, "n": 3}, "nonsense", {**relay, "n": -1}]), 5.0)
    assert [event.origin for event in taken.events] == [("b", 4), ("b", 3)]
    assert (taken.ignored, taken.marks) == (2, {"b": 4})


@given(st.text(max_size=30) | st.builds(json.dumps, frames | st.lists(frames, max_size=3)))
def test_nothing_that_is_said_does_harm(text: str) -> None:
    taken = read_message(text, 5.0)
    assert taken.ignored >= 0
    assert taken.events or taken.ignored
    for event in taken.events:
        assert light_json.loads(light_json.dumps(event.envelope()))
