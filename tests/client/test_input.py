"""Bytes on their way to a process, without I/O."""

from __future__ import annotations

from base64 import b64decode

from holdfast.client.interactive import PendingInput
from holdfast.client.link import Done, Failed
from holdfast.errors import StdinClosed, StdinFull
from holdfast.wire.frames import Message


def sent(input: PendingInput, rid: int, now: float = 0.0) -> tuple[bytes, int | None, bool] | None:
    question = input.question(now)
    if question is None:
        return None
    input.asked(rid)
    return b64decode(question["data"]), question["at"], question["eof"]


def accepted(rid: int, reach: int, status: str = "sent") -> Done:
    value: Message = {"accepted": reach, "status": status}
    return Done(rid, value)


def test_one_piece_at_a_time_in_order() -> None:
    input = PendingInput("p", 0)
    input.add(b"first ")
    assert sent(input, 1) == (b"first ", None, False)
    input.add(b"second")
    input.add_eof()
    assert input.question(0.0) is None
    assert input.take(accepted(1, 6), 0.0)
    assert sent(input, 2) == (b"second", None, True)
    assert input.take(accepted(2, 12), 0.0)
    assert input.is_empty


def test_a_piece_lost_with_the_link_is_sent_again_to_the_same_place() -> None:
    input = PendingInput("p", 0)
    input.add(b"abc")
    sent(input, 1)
    input.take(accepted(1, 3), 0.0)
    input.add(b"def")
    sent(input, 2)
    input.note_cut()
    assert sent(input, 1) == (b"def", 3, False)


def test_without_knowing_where_it_stands_nothing_is_doubled() -> None:
    input = PendingInput("p", None)
    input.add(b"abc")
    sent(input, 1)
    input.note_cut()
    assert input.is_empty


def test_a_process_that_does_not_read_is_given_time() -> None:
    input = PendingInput("p", 0)
    input.add(b"abc")
    sent(input, 1)
    assert input.take(Failed(1, StdinFull("full")), 10.0)
    assert input.question(10.0) is None
    due = input.due_in(10.0)
    assert due is not None
    assert due > 0
    assert sent(input, 2, 10.0 + due) == (b"abc", None, False)


def test_closed_input_ends_the_sending() -> None:
    for answer in (Failed(1, StdinClosed("no")), accepted(1, 0, "already_exited")):
        input = PendingInput("p", 0)
        input.add(b"abc")
        sent(input, 1)
        input.take(answer, 0.0)
        input.add(b"more")
        assert input.is_shut
        assert input.is_empty
        assert not input.can_take


def test_answers_to_others_are_left_alone() -> None:
    input = PendingInput("p", 0)
    assert not input.take(accepted(5, 1), 0.0)
