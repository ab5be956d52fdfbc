"""The events of an agent, for front ends and hooks; and who an agent is to the daemon."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import Denied
from tests.agent.endpoint import Call, Endpoint, Fail, Say
from tests.agent.stage import Conversation
from tests.support import eventually, run_cli


@contextmanager
def _followed(pattern: str) -> Iterator[list[dict[str, Any]]]:
    """The events from now on, as they come."""
    found: list[dict[str, Any]] = []
    with holdfast.connect() as client:
        reading = client.events(pattern, follow=True)
        is_there = threading.Event()

        def read() -> None:
            with reading as events:
                for event in events:
                    if event["type"] == "test.begin":
                        is_there.set()
                    elif event["type"] == "test.end":
                        return
                    else:
                        found.append(event)

        reader = threading.Thread(target=read)
        reader.start()
        with holdfast.connect() as other:
            eventually(lambda: other.publish("test.begin", {}) and is_there.wait(0.1))
            yield found
            other.publish("test.end", {})
        reader.join(30)


def test_events_of_a_turn(endpoint: Endpoint, talk: Conversation) -> None:
    step = Say("I look", calls=[Call("terminal", {"command": "sleep 2.2"})], reasoning="thinking")
    endpoint.script(step, Fail(500), Say("all is well"))
    with _followed("agent.* tui.** tool.* test.*") as events:
        talk.say("go")
        eventually(lambda: any(event["type"] == "agent.end" for event in events))
    types = [event["type"] for event in events]
    assert {event["session"] for event in events} == {"A"}
    for wanted in (
        *("agent.input", "agent.start", "agent.step", "agent.end", "tool.start", "tool.complete"),
        *("tui.message.start", "tui.message.delta", "tui.message.complete", "tui.reasoning.delta"),
        *("tui.reasoning.available", "tui.tool.generating", "tui.tool.start", "tui.tool.progress"),
        *("tui.tool.complete", "tui.error"),
    ):
        assert wanted in types, wanted
    steps = [(event["entry"], event["kind"]) for event in events if event["type"] == "agent.step"]
    assert steps == [(entry.id, entry.kind) for entry in talk.entries[1:]]
    for entry in talk.of("assistant"):
        streamed = [
            event["text"] for event in events if event["type"] == "tui.message.delta" and event["entry"] == entry.id
        ]
        assert "".join(streamed) == entry.content["text"]
    assert all(("seq" in event) == (not event["type"].startswith("tui.")) for event in events)
    end = events[types.index("agent.end")]
    assert (end["reason"], end["steps"], end["input_tokens"]) == ("done", 2, 200)


def test_a_transient_event_is_not_kept(home: Path) -> None:
    with _followed("x.*  test.*") as events, holdfast.connect() as client:
        assert client.publish("x.y", {"a": 1}, transient=True) == 0
        assert client.publish("x.z", {"a": 2}) > 0
        eventually(lambda: len(events) == 2)
    with holdfast.connect() as client, client.events("x.*") as kept:
        assert [event["type"] for event in kept] == ["x.z"]
    assert "seq" not in events[0] or events[0]["type"] == "x.z"


def test_a_process_acts_for_the_session_that_a_free_caller_names(home: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "ps", "-q"]
    with holdfast.connect(session="A") as client:
        of_a, of_b = client.run("sleep 1000", session="A"), client.run("sleep 1001", session="B")
        own = client.run(command, session="B", name="own")
        acting = client.run(command, session="B", name="acting", acts_for="A")
        client.wait([own.id, acting.id], timeout=60)
        assert of_b.id in client.logs(own.id).data.decode() and of_a.id not in client.logs(own.id).data.decode()
        assert client.logs(acting.id).data.decode().split() == [of_a.id]


def test_a_bound_caller_cannot_act_for_another_session(home: Path) -> None:
    with holdfast.connect(session="A", strict=True) as client, pytest.raises(Denied):
        client.run("true", acts_for="B")
    code = "import holdfast\nwith holdfast.connect() as hf: hf.run('true', acts_for='B')"
    done = run_cli("run", "--session", "A", "--", sys.executable, "-c", code)
    assert done.returncode == 1 and b"Denied" in done.stdout + done.stderr


def test_a_held_command_does_not_speak_for_the_user(home: Path) -> None:
    nested = f"""{sys.executable} -m holdfast publish agent.input '{{"session": "A", "text": "yes"}}'"""
    done = run_cli("run", "--session", "A", "-c", nested)
    assert done.returncode == 125 and b"only the user writes to an agent" in done.stdout + done.stderr
