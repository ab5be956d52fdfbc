"""The public surface is what the files say."""

from __future__ import annotations

import difflib
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from tests.golden import surface
from tests.golden.calls import NO_REQUEST


def check(found: dict[str, str], pattern: str | None = None) -> None:
    """Each text equals its file, and no file that the pattern names is left over."""
    there = {str(path.relative_to(surface.FILES)) for path in surface.FILES.glob(pattern)} if pattern else set()
    assert there <= found.keys(), surface.HOW
    for name, text in found.items():
        path = surface.FILES / name
        recorded = path.read_text(encoding="utf-8") if path.exists() else ""
        changes = difflib.unified_diff(recorded.splitlines(), text.splitlines(), "recorded", "now", lineterm="")
        assert text == recorded, "\n".join([f"{name} differs; {surface.HOW}", *changes])


@pytest.mark.parametrize(
    ("make", "pattern"),
    [
        (surface.help_pages, "help*/*.txt"),
        (surface.python_calls, "python.json"),
        (surface.documented_events, "events-documented.json"),
    ],
)
def test_help_client_calls_and_documented_events_are_as_recorded(
    make: Callable[[], dict[str, str]], pattern: str
) -> None:
    check(make(), pattern)


def test_the_openapi_document_and_the_tool_schemas_are_as_recorded(home: Path) -> None:
    check(surface.served(home))


def test_requests_replies_events_and_notifications_are_as_recorded(tmp_path: Path) -> None:
    check(surface.wire(tmp_path))


def test_every_call_of_the_client_is_recorded() -> None:
    recorded = json.loads((surface.FILES / "requests.json").read_text(encoding="utf-8"))
    public = {name for name, _ in inspect.getmembers(holdfast.Client, callable) if not name.startswith("_")}
    assert public - NO_REQUEST - recorded.keys() == set()


def test_seen_events_have_the_documented_fields() -> None:
    seen, documented = (
        json.loads((surface.FILES / f"events-{name}.json").read_text(encoding="utf-8"))
        for name in ("seen", "documented")
    )
    envelope = {"type", "ts", "src", "seq"}
    assert len(seen.keys() & documented.keys()) > 10
    for topic in seen.keys() & documented.keys():
        optional = {field[:-1] for field in documented[topic] if field.endswith("?")}
        assert set(seen[topic]) - envelope - optional == {f for f in documented[topic] if not f.endswith("?")}, topic
    assert seen.keys() - documented.keys() == {"deploy.done"}


def test_a_changed_surface_says_how_to_record_it() -> None:
    with pytest.raises(AssertionError, match=re.escape(surface.HOW)):
        check({"python.json": "{}"}, "python.json")
