"""Output as server-sent events: whole, resumable, and over with the process."""

from __future__ import annotations

import base64
import os
import signal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast import light_json
from holdfast.client.http.parser import EventParser
from holdfast.http import sse
from tests.http.asking import Api, events
from tests.support import eventually

EVENTS = {"Accept": "text/event-stream"}


def read(api: Api, path: str, last: str | None = None, most: int | None = None) -> list[tuple[str, str, Any]]:
    headers = EVENTS if last is None else {**EVENTS, "Last-Event-ID": last}
    found = []
    with api.asking(path, headers) as response:
        assert response.status == 200, response.read()
        for event in events(response):
            found.append(event)
            if len(found) == most:
                break
    return found


def test_a_process_is_followed_to_its_end(api: Api) -> None:
    process = api.start("echo one; echo two; sleep 0.1; printf three")
    path = f"/api/v1/processes/{process['id']}/log"
    found = read(api, path)
    assert "".join(data["text"] for _, kind, data in found if kind == "output") == "one\ntwo\nthree"
    last, kind, end = found[-1]
    assert (last, kind, end["end"], end["process"]["exit_code"]) == ("13.end", "end", 13, 0)
    received = api.ask("GET", path, headers={**EVENTS, "Last-Event-ID": last})
    assert received.status == 204  # a browser stops asking then
    assert read(api, path, last=found[0][0])[-1][1] == "end"
    assert api.ask("GET", path, headers={**EVENTS, "Last-Event-ID": "x"}).code == "bad_value"
    assert api.ask("GET", f"{path}?line=3", headers=EVENTS).code == "bad_value"
    assert api.ask("GET", "/api/v1/processes/nope/log", headers=EVENTS).code == "not_found"


def test_the_present_output_without_following(api: Api) -> None:
    process = api.start("echo one; echo two; sleep 60")
    path = f"/api/v1/processes/{process['id']}/log"
    eventually(lambda: api.ask("GET", path).value["total"] == 8)
    found = read(api, f"{path}?follow=false&view=raw&lines=1")
    assert base64.b64decode(found[0][2]["data"]) == b"two\n"
    assert found[-1][1] == "end"


def test_a_descendant_that_keeps_the_output_open_is_not_waited_for(api: Api) -> None:
    process = api.start("(sleep 60; echo late) & echo done")
    found = read(api, f"/api/v1/processes/{process['id']}/log")
    assert [kind for _, kind, _ in found] == ["output", "end"]


def test_events_go_on_after_the_daemon_was_killed(own: Api) -> None:
    process = own.start("i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); sleep 0.005; done")
    path = f"/api/v1/processes/{process['id']}/log"
    received = read(own, path, most=5)
    os.kill(own.client.status()["pid"], signal.SIGKILL)
    last = received[-1][0]
    rest: list[Any] = []

    def resumed() -> bool:
        try:
            rest[:] = read(own, path, last=last)
        except OSError:
            return False
        return True

    eventually(resumed, timeout=30)
    text = "".join(data["text"] for _, kind, data in received + rest if kind == "output")
    assert text == "".join(f"line {n}\n" for n in range(300))
    assert rest[-1][2]["process"]["exit_code"] == 0


@given(st.lists(st.binary(max_size=50), max_size=20), st.booleans(), st.integers(1, 40))
def test_events_however_cut(pieces: list[bytes], raw: bool, cut: int) -> None:
    """What goes in comes out, whatever the pieces; every id is where the next event begins."""
    made = sse.OutputEvents("out", 0, raw)
    at, events_made = 0, b""
    for piece in pieces:
        events_made += made.feed(at, piece)
        at += len(piece)
    events_made += made.flush()
    parser = EventParser()
    found = [
        event for start in range(0, len(events_made), cut) for event in parser.feed(events_made[start : start + cut])
    ]
    values = [light_json.loads(data) for _, data in found]
    assert [value["offset"] for value in values] == [0, *(value["next_offset"] for value in values)][: len(values)]
    assert not values or values[-1]["next_offset"] == at
    if raw:
        assert b"".join(base64.b64decode(value["data"]) for value in values) == b"".join(pieces)


def test_a_gap_is_no_text() -> None:
    made = sse.OutputEvents("out", 0, raw=False)
    assert made.feed(0, b"abc") == b""
    events_made = made.feed(10, b"def\n").decode()
    assert '"offset":0,"next_offset":3,"text":"abc"' in events_made
    assert '"offset":10,"next_offset":14,"text":"def\\n"' in events_made
