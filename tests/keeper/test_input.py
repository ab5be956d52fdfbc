"""What is written to a command arrives once, in order, and ends when it is told to."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from tests.keeper.driver import ONE, TWO, Family, Refused
from tests.support import eventually


def test_without_stdin_a_command_reads_nothing(family: Family) -> None:
    family.start(ONE, "cat; echo end")
    assert family.complete(ONE) == b"end\n"
    family.start(TWO, "sleep 300")
    with pytest.raises(Refused, match="without input") as refused:
        family.write(TWO, b"x")
    assert refused.value.code == "stdin_closed"


def test_closing_is_a_real_end_of_file(family: Family) -> None:
    family.start(ONE, "cat; exit 9", stdin=True)
    family.write(ONE, b"abc\n")
    family.line.ask("close_stdin", id=ONE)
    assert family.exit_of(ONE)["code"] == 9
    assert family.complete(ONE) == b"abc\n"


def test_a_write_after_the_end_is_refused(family: Family) -> None:
    family.start(ONE, "cat > /dev/null; sleep 300", stdin=True)
    family.line.ask("close_stdin", id=ONE)
    with pytest.raises(Refused) as refused:
        family.write(ONE, b"late")
    assert refused.value.code == "stdin_closed"


def test_a_write_that_is_tried_again_arrives_once(family: Family) -> None:
    family.start(ONE, "cat", stdin=True)
    assert family.write(ONE, b"once\n", at=0) == 5
    assert family.write(ONE, b"once\ntwice\n", at=0) == 11
    with pytest.raises(Refused, match="11 bytes"):
        family.write(ONE, b"x", at=12)
    family.line.ask("close_stdin", id=ONE)
    assert family.complete(ONE) == b"once\ntwice\n"


def test_more_than_a_pipe_holds_arrives_whole(family: Family) -> None:
    data = random.Random(1).randbytes(3 << 20)
    family.start(ONE, "sleep 0.2; sha256sum", stdin=True)
    at = 0
    for start in range(0, len(data), 1 << 18):
        at = family.write(ONE, data[start : start + (1 << 18)], at)
    family.line.ask("close_stdin", id=ONE)
    assert family.complete(ONE).split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_who_does_not_read_is_not_written_to_for_ever(family: Family) -> None:
    family.start(ONE, "sleep 300", stdin=True)
    for _ in range(16):
        family.write(ONE, bytes(1 << 20))
    with pytest.raises(Refused) as refused:
        family.write(ONE, bytes(1 << 20))
    assert refused.value.code == "stdin_full"


def test_a_reader_that_leaves_early_harms_nobody(family: Family) -> None:
    family.start(ONE, "head -c 3; exec 0<&-; sleep 0.1; exit 2", stdin=True)
    family.write(ONE, b"abcdef" * 100_000)
    assert family.complete(ONE) == b"abc"
    assert family.exit_of(ONE)["code"] == 2


def test_end_of_file_on_a_terminal_is_its_key_for_it(family: Family) -> None:
    family.start(ONE, "cat; echo end", pty=True)
    family.write(ONE, b"half a line")
    family.line.ask("close_stdin", id=ONE)
    assert b"end" in family.complete(ONE)


def test_a_terminal_in_raw_mode_has_no_end_of_file(family: Family) -> None:
    family.start(ONE, "stty raw; echo raw; sleep 300", pty=True)
    eventually(lambda: b"raw" in family.output(ONE))
    with pytest.raises(Refused) as refused:
        family.line.ask("close_stdin", id=ONE)
    assert refused.value.code == "unsupported"


def test_what_is_typed_is_on_no_disk(family: Family, tmp_path: Path) -> None:
    family.start(ONE, "stty -echo; echo ready; read -r secret; echo ${#secret}", pty=True)
    eventually(lambda: b"ready" in family.output(ONE))
    family.write(ONE, b"hunter2-canary\r")
    assert b"14" in family.complete(ONE)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not any(b"hunter2" in path.read_bytes() for path in files)
