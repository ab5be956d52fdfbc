"""docs/events.md tells of every event, with every field."""

from __future__ import annotations

import re
from pathlib import Path

import holdfast

_PAGE = Path(__file__).parents[2] / "docs" / "events.md"
_ENVELOPE = {"type", "ts", "src", "seq"}


def documented() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `([a-z.]+)` \| (.*?) \|", _PAGE.read_text().partition("## Topics")[2], re.MULTILINE)
    return {topic: set(re.findall(r"[a-z_]+", fields.replace("`", " "))) for topic, fields in rows}


def test_every_event_is_documented_with_every_field(home: Path) -> None:
    known = documented()
    with holdfast.connect() as hf:
        hf.wait(hf.run("exit 3", name="a").id)
        hf.kill(hf.run("sleep 100", pty=True).id)
        seen = list(hf.events())
    assert {"process.started", "process.ended"} <= {event["type"] for event in seen}
    for event in seen:
        assert set(event) - _ENVELOPE == known[event["type"]], event["type"]


def test_every_topic_that_the_source_names_is_documented() -> None:
    source = Path(holdfast.__file__).parent
    named: set[str] = set()
    for path in (source / "daemon").rglob("*.py"):
        named |= set(
            re.findall(r'"((?:process|session|notification|daemon|backend|events)\.[a-z_]+)"', path.read_text())
        )
    named |= set(re.findall(r'Event\("([a-z_.]+)"', (source / "model" / "happenings.py").read_text()))
    assert named - documented().keys() == set()
