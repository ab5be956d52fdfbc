"""A whole instance that a release left behind opens, and answers what it answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.upgrade.make_instance import INSTANCES, answers, unpack

LEFT_BEHIND = sorted(INSTANCES.glob("*.tar.xz"))


def differences(recorded: Any, now: Any, path: str = "") -> list[str]:
    """Where they differ. New fields in an object are none."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        pairs = [(f"{path}.{key}", value, now.get(key, "missing")) for key, value in recorded.items()]
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        pairs = [(f"{path}[{at}]", *pair) for at, pair in enumerate(zip(recorded, now, strict=True))]
    else:
        return [] if recorded == now else [f"{path}: {recorded!r} became {now!r}"]
    return [found for where, old, new in pairs for found in differences(old, new, where)]


@pytest.mark.parametrize("archive", LEFT_BEHIND, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_an_instance_left_behind_answers_as_recorded(archive: Path, home: Path) -> None:
    unpack(archive, home)
    recorded = json.loads(archive.with_suffix("").with_suffix(".json").read_text(encoding="utf-8"))
    now = answers(home)
    now["events"] = [topic for topic in now["events"] if topic in recorded["events"]]  # later releases publish more
    assert differences(recorded, now) == []


def test_there_is_an_instance_to_open() -> None:
    assert LEFT_BEHIND
