"""Input arrives once and in order, and ends when it is closed."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from tests.keeper.driver import ONE, TWO, KeeperPair, Refused
from tests.support import eventually


def test_without_stdin_a_command_reads_nothing(pair: KeeperPair) -> None:
    pair.start(ONE, "cat; echo end")
    assert pair.complete(ONE) == b"end\n"
    pair.start(TWO, "sleep 300")
    with pytest.raises(Refused, match="without input") as refused:
        pair.write(TWO, b"x")
    assert refused.value.code == "stdin_closed"


def test_closing_is_a_real_end_of_file(pair: KeeperPair) -> None:
    pair.start(ONE, "cat; exit 9", stdin=True)
    pair.write(ONE, b"abc\n")
    pair.control.ask("close_stdin", id=ONE)
    assert pair.exit_of(ONE)["code"] == 9
    assert pair.complete(ONE) == b"abc\n"


def test_a_write_after_the_end_is_refused(pair: KeeperPair) -> None:
    pair.start(ONE, "cat > /dev/null; sleep 300", stdin=True)
    pair.control.ask("close_stdin", id=ONE)
    with pytest.raises(Refused) as refused:
        pair.write(ONE, b"late")
    assert refused.value.code == "stdin_closed"


def test_a_write_that_is_tried_again_arrives_once(pair: KeeperPair) -> None:
    pair.start(ONE, "cat", stdin=True)
    assert pair.write(ONE, b"once\n", at=0) == 5
    assert pair.write(ONE, b"once\ntwice\n", at=0) == 11
    with pytest.raises(Refused, match="11 bytes"):
        pair.write(ONE, b"x", at=12)
    pair.control.ask("close_stdin", id=ONE)
    assert pair.complete(ONE) == b"once\ntwice\n"


def test_more_than_a_pipe_holds_arrives_whole(pair: KeeperPair) -> None:
    data = random.Random(1).randbytes(3 << 20)
    pair.start(ONE, "sleep 0.2; sha256sum", stdin=True)
    at = 0
    for start in range(0, len(data), 1 << 18):
        at = pair.write(ONE, data[start : start + (1 << 18)], at)
    pair.control.ask("close_stdin", id=ONE)
    assert pair.complete(ONE).split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_input_that_is_not_read_is_refused_above_a_limit(pair: KeeperPair) -> None:
    pair.start(ONE, "sleep 300", stdin=True)
    for _ in range(16):
        pair.write(ONE, bytes(1 << 20))
    with pytest.raises(Refused) as refused:
        pair.write(ONE, bytes(1 << 20))
    assert refused.value.code == "stdin_full"


def test_a_command_that_closes_its_input_early_ends_normally(pair: KeeperPair) -> None:
    pair.start(ONE, "head -c 3; exec 0<&-; sleep 0.1; exit 2", stdin=True)
    pair.write(ONE, b"abcdef" * 100_000)
    assert pair.complete(ONE) == b"abc"
    assert pair.exit_of(ONE)["code"] == 2


def test_end_of_file_on_a_terminal_is_the_end_of_file_key(pair: KeeperPair) -> None:
    pair.start(ONE, "cat; echo end", pty=True)
    pair.write(ONE, b"half a line")
    pair.control.ask("close_stdin", id=ONE)
    assert b"end" in pair.complete(ONE)


def test_a_terminal_in_raw_mode_has_no_end_of_file(pair: KeeperPair) -> None:
    pair.start(ONE, "stty raw; echo raw; sleep 300", pty=True)
    eventually(lambda: b"raw" in pair.output(ONE))
    with pytest.raises(Refused) as refused:
        pair.control.ask("close_stdin", id=ONE)
    assert refused.value.code == "unsupported"


def test_typed_input_is_never_on_disk(pair: KeeperPair, tmp_path: Path) -> None:
    pair.start(ONE, "stty -echo; echo ready; read -r secret; echo ${#secret}", pty=True)
    eventually(lambda: b"ready" in pair.output(ONE))
    pair.write(ONE, b"hunter2-canary\r")
    assert b"14" in pair.complete(ONE)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not any(b"hunter2" in path.read_bytes() for path in files)
