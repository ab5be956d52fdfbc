"""SIGKILL at chosen points: between any two steps of a start, an end, a kill, a move of bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.keeper.driver import ONE, Family
from tests.support import eventually

STARTS = ["start-prepared", "start-deposited", "start-released", "start-seen", "spare-ready"]
FLOWS = ["output-seen", "output-moved", "segment-started", "input-written", "input-moved"]
ENDS = ["exit-learned", "exit-recorded", "exit-published", "exit-reaped", "bundle-done", "stop-recorded"]

#: A shell hears a signal between two commands, or during a read that has begun; so it reads again and again.
PATIENT = "while :; do read -t 0.05 -u 9; done"
DATA = b"".join(b"%07d\n" % number for number in range(40_000))


def dying_at(point: str, directory: Path) -> Family:
    return Family(directory, HOLDFAST_DIE_AT=point, HOLDFAST_DIE_MARK=str(directory / "died"))


def again(family: Family) -> None:
    eventually(family.reconnect)


@pytest.mark.parametrize("point", STARTS)
@pytest.mark.parametrize("pty", [False, True])
def test_a_start_that_is_interrupted_happens_once_or_never(tmp_path: Path, point: str, pty: bool) -> None:
    """Asked again with the same id, as the daemon does, the command has run exactly once."""
    family = dying_at(point, tmp_path)
    try:
        command = f"echo ran >> {tmp_path}/times; echo hello; exit 5"
        try:
            family.start(ONE, command, pty=pty)
        except ConnectionError:
            again(family)
            family.start(ONE, command, pty=pty)
        assert (tmp_path / "died").exists()
        assert family.exit_of(ONE)["code"] == 5
        assert family.complete(ONE).strip() == b"hello"
        assert (tmp_path / "times").read_text() == "ran\n"
    finally:
        family.close()


@pytest.mark.parametrize("pty", [False, True])
def test_what_was_deposited_for_an_interrupted_start_is_not_taken_for_the_next(tmp_path: Path, pty: bool) -> None:
    family = dying_at("start-deposited", tmp_path)
    try:
        command = "echo up; read x; echo $x; exit 5"
        with pytest.raises(ConnectionError):
            family.start(ONE, command, pty=pty, stdin=True)
        again(family)
        family.start(ONE, command, pty=pty, stdin=True)
        eventually(lambda: b"up" in _output(family))
        family.kill(family.keeper)
        assert family.line.ask("report", id=ONE)["exit"] is None
        family.write(ONE, b"more\n")
        assert family.exit_of(ONE)["code"] == 5
        assert b"more" in family.complete(ONE)
    finally:
        family.close()


@pytest.mark.parametrize("point", [*FLOWS, *ENDS])
@pytest.mark.parametrize("pty", [False, True])
def test_bytes_and_exit_code_do_not_care_when_the_keeper_dies(tmp_path: Path, point: str, pty: bool) -> None:
    family = dying_at(point, tmp_path)
    prepare = "stty raw -echo 2>/dev/null; printf up"
    command = f"{prepare}; head -c {len(DATA)}; trap 'exit 9' TERM; exec 9<> <(:); printf end; {PATIENT}"
    try:
        try:
            family.start(ONE, command, pty=pty, stdin=True, log_cap=1 << 20)
        except ConnectionError:
            again(family)
        _feed(family, DATA)
        eventually(lambda: family.output(ONE).endswith(b"end"))
        try:
            family.stop(ONE)
        except ConnectionError:
            again(family)
            family.stop(ONE)
        assert family.complete(ONE) == b"up" + DATA + b"end"
        eventually((tmp_path / "died").exists)
        again(family)
        ended = family.exit_of(ONE)
        assert ended["code"] == 9, ended
        assert family.line.ask("report", id=ONE)["stop"]["by"] == "tester"
    finally:
        family.close()


def _feed(family: Family, data: bytes) -> None:
    """Write it all; a piece whose answer was cut off is written again at the same place."""
    eventually(lambda: _output(family).startswith(b"up"))
    at = 0
    while at < len(data):
        try:
            at = family.write(ONE, data[at : at + 20_000], at)
        except ConnectionError:
            again(family)


def _output(family: Family) -> bytes:
    try:
        return family.output(ONE)
    except FileNotFoundError:
        return b""
