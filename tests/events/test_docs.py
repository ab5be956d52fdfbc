"""docs/events.md tells of every event, with every field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import holdfast
from tests.support import eventually

_PAGE = Path(__file__).parents[2] / "docs" / "events.md"
_ENVELOPE = {"type", "ts", "src", "seq"}


def documented() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `([a-z._]+)` \| (.*?) \|", _PAGE.read_text().partition("## Topics")[2], re.MULTILINE)
    return {topic: set(re.findall(r"[a-z_]+", fields.replace("`", " "))) for topic, fields in rows}


def test_every_event_is_documented_with_every_field(home: Path) -> None:
    known = documented()
    with holdfast.connect() as hf:
        hf.wait(hf.run("exit 3", name="a").id)
        hf.kill(hf.run("sleep 100", pty=True).id)
        seen = list(hf.events())
    assert {"daemon.start", "session.start", "process.started", "process.ended"} <= {event["type"] for event in seen}
    for event in seen:
        assert set(event) - _ENVELOPE == known[event["type"]], event["type"]


def test_every_topic_that_the_source_names_is_documented() -> None:
    source = Path(holdfast.__file__).parent
    named: set[str] = set()
    for path in (source / "daemon").rglob("*.py"):
        named |= set(
            re.findall(r'"((?:process|session|notification|daemon|backend|events|sink)\.[a-z_]+)"', path.read_text())
        )
    for path in (source / "model" / "events.py", *(source / "daemon" / "approvals").glob("*.py")):
        named |= set(re.findall(r'Event\("([a-z_.]+)"', path.read_text()))
    assert named - documented().keys() == set()


def test_events_of_a_process_that_is_run_again_and_of_one_that_is_ready(home: Path) -> None:
    known = documented()
    with holdfast.connect() as hf:
        again = hf.run("exit 3", restart="on-failure", restart_limit=1, restart_delay=0.01)
        ready = hf.run("echo up; sleep 100", ready_log="up")
        late = hf.run("sleep 100", ready_log="never", ready_timeout=0.05, stall=1.0)
        hf.wait(again.id)
        hf.wait([ready.id, late.id], until="ready")
        eventually(lambda: hf.inspect(late.id).stalled)
        seen = list(hf.events())
        hf.kill(ready.id)
        hf.kill(late.id)
    for event in seen:
        assert set(event) - _ENVELOPE == known[event["type"]], event["type"]
    assert told_of(seen, again.id) == ["started", "restarting", "started", "ended"]
    assert [event["run"] for event in seen if event.get("id") == again.id] == [0, 0, 1, 1]
    assert [event["gave_up"] for event in seen if event["type"] == "process.ended"] == [True]
    assert told_of(seen, ready.id) == ["started", "ready"]
    assert told_of(seen, late.id) == ["started", "not_ready", "stalled"]


def told_of(events: list[dict[str, Any]], process_id: str) -> list[str]:
    return [event["type"].removeprefix("process.") for event in events if event.get("id") == process_id]
