"""The same command twice."""

from __future__ import annotations

import pytest

from holdfast.errors import AlreadyRunning
from holdfast.model.duplicates import note, refuse, twins
from tests.model.made import ended, process

WANTED = process(9).meta


def test_twins_have_session_command_and_directory_in_common() -> None:
    twin = process(1)
    others = [process(2, session="x"), process(3, cwd="/tmp"), process(4, argv=("sleep", "61")), ended(5, 1.0)]
    assert twins(WANTED, [*others, twin]) == [twin]


def test_nobody_is_their_own_twin() -> None:
    assert twins(WANTED, [process(9)]) == []


def test_twins_are_named() -> None:
    with pytest.raises(AlreadyRunning, match=process(1).id):
        refuse([process(1)])
    assert process(1).id in note([process(1)])
