"""The record of what replies deliver: it outlives the daemon, and a file that is broken or full harms nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.store.replies import ReplyRecord


def note(number: int) -> str:
    return f"note_{number:012x}"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "replies")


def test_the_next_daemon_finds_what_was_claimed_and_what_was_delivered(path: str) -> None:
    record = ReplyRecord(path)
    assert all(record.claim(note(number)) for number in range(4))
    assert record.had(note(1))
    assert record.had(note(7))
    record.forget([note(2), note(7), note(99)])
    found = ReplyRecord(path)
    assert found.found == {note(0), note(1), note(3)}
    assert found.found_had == {note(1)}
    found.forget(found.found)
    assert ReplyRecord(path).found == set()


def test_slots_are_used_again(path: str) -> None:
    record = ReplyRecord(path)
    for number in range(5000):
        assert record.claim(note(number))
        assert record.had(note(number))
        record.forget([note(number)])
    assert os.stat(path).st_size == os.stat(path).st_blocks * 512 == 32 << 10


def test_what_does_not_fit_is_left_to_the_store(path: str) -> None:
    record = ReplyRecord(path)
    fitting = [number for number in range(2000) if record.claim(note(number))]
    assert fitting == list(range(1024))
    record.forget([note(3)])
    assert record.claim(note(1999))
    assert len(ReplyRecord(path).found) == 1024


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"c",
        os.urandom(1 << 16),
        b"cnote_../../../etc".ljust(32, b"\0") * 2000,
        b"hnote_000000000001".ljust(31, b"\0"),
    ],
    ids=["empty", "torn", "random", "other-text", "cut-off"],
)
def test_a_broken_file_has_nothing_in_it(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
    record = ReplyRecord(path)
    assert record.found == set()
    assert record.claim(note(1))
    assert ReplyRecord(path).found == {note(1)}


def test_without_the_file_everything_is_left_to_the_store(path: str) -> None:
    os.mkdir(path)
    record = ReplyRecord(path)
    assert not record.claim(note(1))
    assert not record.had(note(1))
    record.forget([note(1)])
