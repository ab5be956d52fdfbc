"""Reading on over cut links, without I/O."""

from __future__ import annotations

import pytest

from holdfast.client.link import MAX_CUTS, Done, Failed, Output
from holdfast.client.reading import Cursor, FollowedOutput
from holdfast.errors import NotFound, Unreachable
from holdfast.wire.frames import Message


class Wire:
    """What was asked and given up."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Message]] = []
        self.cancelled: list[int] = []

    def ask(self, op: str, arguments: Message) -> int:
        self.asked.append((op, arguments))
        return len(self.asked)


def following(wire: Wire, cursor: Cursor, to_exit: bool = True) -> FollowedOutput:
    found = FollowedOutput([cursor], to_exit)
    found.begin(wire.ask)
    return found


def take(found: FollowedOutput, wire: Wire, answer: Output | Done | Failed) -> bytes | None:
    pieces = found.take(answer, wire.ask, wire.cancelled.append)
    return pieces[0].data if pieces else None


def test_after_a_cut_it_goes_on_with_the_next_byte() -> None:
    wire, cursor = Wire(), Cursor("p", follow=True, from_=0)
    found = following(wire, cursor, to_exit=False)
    assert take(found, wire, Output(1, "out", 0, b"abc")) == b"abc"
    found.note_cut(Unreachable("cut"))
    found.begin(wire.ask)
    assert wire.asked[-1] == ("logs", {"process": "p", "stream": "out", "follow": True, "from": 3})


def test_what_was_read_before_is_not_read_again() -> None:
    wire, cursor = Wire(), Cursor("p", line=0, lines=5)
    found = following(wire, cursor, to_exit=False)
    take(found, wire, Output(1, "out", 0, b"one\ntw"))
    found.note_cut(Unreachable("cut"))
    found.begin(wire.ask)
    assert wire.asked[-1][1] == {"process": "p", "stream": "out", "follow": False, "line": 0, "lines": 5}
    assert take(found, wire, Output(2, "out", 0, b"one\ntwo\n")) == b"o\n"
    assert take(found, wire, Output(1, "out", 0, b"late answer of the old link")) is None


def test_a_limit_in_bytes_holds_over_cuts() -> None:
    wire, cursor = Wire(), Cursor("p", from_=10, bytes=100)
    found = following(wire, cursor, to_exit=False)
    take(found, wire, Output(1, "out", 10, b"x" * 30))
    found.note_cut(Unreachable("cut"))
    found.begin(wire.ask)
    assert wire.asked[-1][1]["from"] == 40
    assert wire.asked[-1][1]["bytes"] == 70


def test_it_ends_with_the_end_of_the_process() -> None:
    wire, cursor = Wire(), Cursor("p", follow=True, from_=0)
    found = following(wire, cursor)
    assert [(op, arguments["until"], arguments["consume"]) for op, arguments in wire.asked] == [("logs", "exit", False)]
    assert take(found, wire, Output(1, "out", 0, b"hi")) == b"hi"
    before = found.is_over
    take(found, wire, Done(1, {"start": 0, "end": 2, "process": {"id": "p", "status": "ended"}}))
    assert (before, found.is_over) == (False, True)
    assert found.ended is not None
    assert found.ended.status == "ended"


def test_errors_are_raised() -> None:
    wire = Wire()
    found = following(wire, Cursor("p", from_=0))
    with pytest.raises(NotFound):
        take(found, wire, Failed(1, NotFound("gone")))


def test_a_follower_gives_up_after_cuts_without_output_between() -> None:
    wire, cut = Wire(), Unreachable("cut")
    found = following(wire, Cursor("p", follow=True, from_=0), to_exit=False)
    for n in range(3 * MAX_CUTS):
        found.note_cut(cut)
        found.begin(wire.ask)
        take(found, wire, Output(len(wire.asked), "out", n, b"x"))
    for _ in range(MAX_CUTS):
        found.note_cut(cut)
    with pytest.raises(Unreachable):
        found.note_cut(cut)
