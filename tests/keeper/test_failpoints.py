"""SIGKILL at failpoints: between any two steps of a start, an exit, a kill, a move of bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.keeper.driver import ONE, KeeperPair
from tests.support import eventually, is_alive

STARTS = ["start-prepared", "start-requested", "child-deposited", "child-ready", "child-claimed", "start-seen"]
FLOWS = ["output-seen", "output-moved", "segment-started", "input-written", "input-moved"]
ENDS = ["exit-learned", "exit-recorded", "exit-published", "exit-reaped", "bundle-done", "stop-recorded"]

#: A shell handles a signal between two commands, or during a read that has begun; so it reads repeatedly.
PATIENT = "while :; do read -t 0.05 -u 9; done"
DATA = b"".join(b"%07d\n" % number for number in range(40_000))


def dying_at(point: str, directory: Path, **environment: str) -> KeeperPair:
    return KeeperPair(directory, HOLDFAST_DIE_AT=point, HOLDFAST_DIE_MARK=str(directory / "died"), **environment)


def again(pair: KeeperPair) -> None:
    eventually(pair.reconnect)


@pytest.mark.parametrize("point", STARTS)
@pytest.mark.parametrize("pty", [False, True])
@pytest.mark.parametrize("forks", ["server", "keeper"])
def test_a_start_that_is_interrupted_happens_once_or_never(tmp_path: Path, point: str, pty: bool, forks: str) -> None:
    """When the request is repeated with the same id, as the daemon does, the command has run exactly once."""
    pair = dying_at(point, tmp_path, HOLDFAST_NO_FORK_SERVER="" if forks == "server" else "1")
    try:
        command = f"echo ran >> {tmp_path}/times; echo hello; exit 5"
        try:
            pair.start(ONE, command, pty=pty)
        except ConnectionError:
            again(pair)
            pair.start(ONE, command, pty=pty)
        assert (tmp_path / "died").exists()
        ended = pair.exit_of(ONE)
        assert ended["code"] == 5, ended
        assert pair.complete(ONE).strip() == b"hello"
        assert (tmp_path / "times").read_text() == "ran\n"
    finally:
        pair.close()


@pytest.mark.parametrize("pty", [False, True])
def test_descriptors_of_an_interrupted_start_are_not_used_for_the_next(tmp_path: Path, pty: bool) -> None:
    pair = dying_at("child-deposited", tmp_path)
    try:
        command = "echo up; read x; echo $x; exit 5"
        with pytest.raises(ConnectionError):
            pair.start(ONE, command, pty=pty, stdin=True)
        again(pair)
        pair.start(ONE, command, pty=pty, stdin=True)
        eventually(lambda: b"up" in _output(pair))
        pair.kill(pair.keeper)
        assert pair.control.ask("report", id=ONE)["exit"] is None
        pair.write(ONE, b"more\n")
        assert pair.exit_of(ONE)["code"] == 5
        assert b"more" in pair.complete(ONE)
    finally:
        pair.close()


@pytest.mark.parametrize("point", ["renew-asked", "renew-prepared", "renew-inherited"])
def test_an_upgrade_that_is_interrupted_loses_nothing(tmp_path: Path, point: str) -> None:
    """A keeper that dies is replaced by its anchor; if the anchor dies, the daemon starts both again."""
    pair = dying_at(point, tmp_path)
    try:
        pair.start(ONE, f"seq 1 1000; until [ -e {tmp_path}/go-on ]; do sleep 0.02; done; seq 1001 2000; exit 5")
        pair.control.ask("renew", argv=pair.command("99.0"))
        eventually((tmp_path / "died").exists)
        if point != "renew-asked":
            eventually(lambda: not is_alive(pair.anchor))
            pair.launch()
        again(pair)
        (tmp_path / "go-on").touch()
        assert pair.exit_of(ONE)["code"] == 5
        assert pair.complete(ONE) == b"".join(b"%d\n" % number for number in range(1, 2001))
    finally:
        pair.close()


@pytest.mark.parametrize("point", [*FLOWS, *ENDS])
@pytest.mark.parametrize("pty", [False, True])
def test_output_and_exit_code_survive_a_keeper_killed_at_any_failpoint(tmp_path: Path, point: str, pty: bool) -> None:
    pair = dying_at(point, tmp_path)
    prepare = "stty raw -echo 2>/dev/null; printf up"
    command = f"{prepare}; head -c {len(DATA)}; trap 'exit 9' TERM; exec 9<> <(:); printf end; {PATIENT}"
    try:
        try:
            pair.start(ONE, command, pty=pty, stdin=True, log_cap=1 << 20)
        except ConnectionError:
            again(pair)
        _feed(pair, DATA)
        eventually(lambda: pair.output(ONE).endswith(b"end"))
        try:
            pair.stop(ONE)
        except ConnectionError:
            again(pair)
            pair.stop(ONE)
        assert pair.complete(ONE) == b"up" + DATA + b"end"
        eventually((tmp_path / "died").exists)
        again(pair)
        ended = pair.exit_of(ONE)
        assert ended["code"] == 9, ended
        assert pair.control.ask("report", id=ONE)["stop"]["by"] == "tester"
    finally:
        pair.close()


def _feed(pair: KeeperPair, data: bytes) -> None:
    """Write it all; a piece whose answer was cut off is written again at the same place."""
    eventually(lambda: _output(pair).startswith(b"up"))
    at = 0
    while at < len(data):
        try:
            at = pair.write(ONE, data[at : at + 20_000], at)
        except ConnectionError:
            again(pair)


def _output(pair: KeeperPair) -> bytes:
    try:
        return pair.output(ONE)
    except FileNotFoundError:
        return b""
