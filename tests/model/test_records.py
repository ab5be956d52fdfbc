"""Records with and without msgspec: what is stored of a process is the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.records import Struct, asdict, names, replace

WORK = """
import json
from holdfast.model.lifecycle import Ended, Exited
from holdfast.model.process import HeldProcess, Meta, ProcessId
from holdfast.records import Struct, asdict, names, replace

meta = Meta(ProcessId("proc_0123456789ab"), "true", ("true",), "/", "s", 1.5, labels={"a": "b"}, memory=3)
process = replace(HeldProcess(meta), state=Ended(Exited(7), 2.0, 3.0), run=2)
assert Meta.from_json(meta.to_json()) == meta
print(Struct.__module__)
print(json.dumps([meta.to_json(), asdict(process.state)["known_at"], names(HeldProcess), process.run], default=repr))
"""


def outcome(prelude: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", prelude + WORK], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_python_without_msgspec_stores_the_same() -> None:
    with_it = outcome("")
    without = outcome("import sys; sys.modules['msgspec'] = None\n")

    assert (with_it[0], without[0]) == ("msgspec", "holdfast.records")
    assert with_it[1:] == without[1:]


class Point(Struct, frozen=True):
    x: int
    y: int = 0


def test_a_frozen_record_is_copied_and_not_changed() -> None:
    point = Point(1)

    assert replace(point, y=2) == Point(1, 2)
    assert (names(Point), asdict(point)) == (("x", "y"), {"x": 1, "y": 0})
    with pytest.raises(AttributeError):
        point.x = 2  # type: ignore[misc]
