"""The same command twice."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import AlreadyRunning
from holdfast.model.process_rules import duplicate_note, refuse_duplicate
from tests.model.made import process

WANTED = process(9).meta


def test_the_same_start_has_the_same_likeness() -> None:
    assert process(1, name="other", task="t", lifetime="session").meta.duplicate_key == WANTED.duplicate_key


@pytest.mark.parametrize("other", [{"session": "x"}, {"cwd": "/tmp"}, {"argv": ("sleep", "61")}])
def test_another_session_directory_or_command_is_another_likeness(other: dict[str, Any]) -> None:
    assert process(1, **other).meta.duplicate_key != WANTED.duplicate_key


def test_twins_are_named() -> None:
    with pytest.raises(AlreadyRunning, match=process(1).id):
        refuse_duplicate([process(1)])
    assert duplicate_note([process(1)]).endswith(process(1).id)


def test_many_twins_are_counted() -> None:
    assert duplicate_note([process(number) for number in range(20)]).endswith("and 15 more")
