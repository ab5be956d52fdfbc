"""What is written to a command arrives once, in order, and ends when it is told to."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from tests.keeper.driver import Family, Refused
from tests.support import eventually


def test_without_stdin_a_command_reads_nothing(family: Family) -> None:
    family.start("proc_1", "cat; echo end")
    assert family.complete("proc_1") == b"end\n"
    family.start("proc_2", "sleep 300")
    with pytest.raises(Refused, match="without input") as refused:
        family.write("proc_2", b"x")
    assert refused.value.code == "stdin_closed"


def test_closing_is_a_real_end_of_file(family: Family) -> None:
    family.start("proc_1", "cat; exit 9", stdin=True)
    family.write("proc_1", b"abc\n")
    family.line.ask("close_stdin", id="proc_1")
    assert family.exit_of("proc_1")["code"] == 9
    assert family.complete("proc_1") == b"abc\n"


def test_a_write_after_the_end_is_refused(family: Family) -> None:
    family.start("proc_1", "cat > /dev/null; sleep 300", stdin=True)
    family.line.ask("close_stdin", id="proc_1")
    with pytest.raises(Refused) as refused:
        family.write("proc_1", b"late")
    assert refused.value.code == "stdin_closed"


def test_a_write_that_is_tried_again_arrives_once(family: Family) -> None:
    family.start("proc_1", "cat", stdin=True)
    assert family.write("proc_1", b"once\n", at=0) == 5
    assert family.write("proc_1", b"once\ntwice\n", at=0) == 11
    with pytest.raises(Refused, match="11 bytes"):
        family.write("proc_1", b"x", at=12)
    family.line.ask("close_stdin", id="proc_1")
    assert family.complete("proc_1") == b"once\ntwice\n"


def test_more_than_a_pipe_holds_arrives_whole(family: Family) -> None:
    data = random.Random(1).randbytes(3 << 20)
    family.start("proc_1", "sleep 0.2; sha256sum", stdin=True)
    at = 0
    for start in range(0, len(data), 1 << 18):
        at = family.write("proc_1", data[start : start + (1 << 18)], at)
    family.line.ask("close_stdin", id="proc_1")
    assert family.complete("proc_1").split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_who_does_not_read_is_not_written_to_for_ever(family: Family) -> None:
    family.start("proc_1", "sleep 300", stdin=True)
    for _ in range(16):
        family.write("proc_1", bytes(1 << 20))
    with pytest.raises(Refused) as refused:
        family.write("proc_1", bytes(1 << 20))
    assert refused.value.code == "stdin_full"


def test_a_reader_that_leaves_early_harms_nobody(family: Family) -> None:
    family.start("proc_1", "head -c 3; exec 0<&-; sleep 0.1; exit 2", stdin=True)
    family.write("proc_1", b"abcdef" * 100_000)
    assert family.complete("proc_1") == b"abc"
    assert family.exit_of("proc_1")["code"] == 2


def test_end_of_file_on_a_terminal_is_its_key_for_it(family: Family) -> None:
    family.start("proc_1", "cat; echo end", pty=True)
    family.write("proc_1", b"half a line")
    family.line.ask("close_stdin", id="proc_1")
    assert b"end" in family.complete("proc_1")


def test_a_terminal_in_raw_mode_has_no_end_of_file(family: Family) -> None:
    family.start("proc_1", "stty raw; echo raw; sleep 300", pty=True)
    eventually(lambda: b"raw" in family.output("proc_1"))
    with pytest.raises(Refused) as refused:
        family.line.ask("close_stdin", id="proc_1")
    assert refused.value.code == "unsupported"


def test_what_is_typed_is_on_no_disk(family: Family, tmp_path: Path) -> None:
    family.start("proc_1", "stty -echo; echo ready; read -r secret; echo ${#secret}", pty=True)
    eventually(lambda: b"ready" in family.output("proc_1"))
    family.write("proc_1", b"hunter2-canary\r")
    assert b"14" in family.complete("proc_1")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not any(b"hunter2" in path.read_bytes() for path in files)
