"""Whoever dies, the others go on: byte for byte, and with the true exit code."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast_keeper import bundle, fd_store
from tests.keeper.driver import ONE, TWO, Family, connect
from tests.support import eventually

COUNT = 400
NUMBERS = b"".join(b"line %d\n" % number for number in range(COUNT))


def counting(code: int) -> str:
    return f"for ((i = 0; i < {COUNT}; i++)); do echo line $i; sleep 0.003; done; exit {code}"


def check(family: Family, process_id: str, code: int) -> None:
    assert family.exit_of(process_id)["code"] == code
    assert family.complete(process_id).replace(b"\r\n", b"\n") == NUMBERS


@pytest.mark.parametrize("who", ["keeper", "anchor"])
def test_any_one_may_die_at_any_time(family: Family, who: str) -> None:
    family.start(ONE, counting(7))
    family.start(TWO, counting(8), pty=True)
    for _ in range(4):
        family.kill(getattr(family, who))
    check(family, ONE, 7)
    check(family, TWO, 8)


def test_both_may_die_and_a_pipe_child_does_not_notice(family: Family) -> None:
    family.start(ONE, counting(7))
    family.kill(family.anchor, family.keeper)
    check(family, ONE, 7)


def test_what_ends_between_two_keepers_is_known_to_the_anchor(family: Family) -> None:
    """On any kernel: the anchor is the parent then, and writes down what it reaps."""
    family.start(ONE, "read x; echo last words; exit 33", stdin=True)
    family.write(ONE, b"go\n")
    os.kill(family.keeper, signal.SIGKILL)
    assert family.reconnect() and family.exit_of(ONE)["code"] == 33
    assert family.complete(ONE) == b"last words\n"


def test_input_goes_on_with_the_next_byte(family: Family) -> None:
    family.start(ONE, "cat; exit 3", stdin=True)
    family.start(TWO, "stty raw -echo; echo ready; head -c 40000; exit 4", pty=True)
    eventually(lambda: b"ready" in family.output(TWO))
    data = b"".join(b"%07d\n" % number for number in range(5000))
    for at in range(0, len(data), 8000):
        for process_id in (ONE, TWO):
            assert family.write(process_id, data[at : at + 8000], at) == at + 8000
        family.kill(family.keeper if at % 16000 else family.anchor)
    family.line.ask("close_stdin", id=ONE)
    assert family.exit_of(ONE)["code"] == 3
    assert family.complete(ONE) == data
    assert family.exit_of(TWO)["code"] == 4
    assert family.complete(TWO).partition(b"ready")[2].lstrip(b"\r\n") == data


class Holder:
    """A third pair of hands, as the daemon is."""

    def __init__(self, family: Family) -> None:
        self._store = fd_store.DescriptorStore()
        self._sock = self._connect(family)
        fd_store.send(self._sock, {"op": "offered"}, [])

    def names(self, process_id: str) -> set[str]:
        while True:
            try:
                received = fd_store.receive(self._sock)
            except BlockingIOError:
                return set(self._store.held.get(process_id, {}))
            if received is None:
                return set(self._store.held.get(process_id, {}))
            header, fds = received
            if header["op"] == "hold":
                self._store.hold(header["id"], header["names"], fds)
            else:
                self._store.drop(header["id"], header["names"])

    def offer(self, family: Family) -> None:
        self._sock.close()
        self._sock = self._connect(family)
        for process_id, fds in self._store.held.items():
            header = {"op": "offer", "id": process_id, "names": list(fds)}
            fd_store.send(self._sock, header, list(fds.values()))
        fd_store.send(self._sock, {"op": "offered"}, [])

    def close(self) -> None:
        self._sock.close()
        for process_id in list(self._store.held):
            self._store.drop(process_id, None)

    def _connect(self, family: Family) -> socket.socket:
        sock = eventually(lambda: connect(family.place, "depot.sock", socket.SOCK_SEQPACKET))
        sock.setblocking(False)
        return sock


@pytest.fixture
def holder(family: Family) -> Iterator[Holder]:
    holder = Holder(family)
    yield holder
    holder.close()


def test_with_a_third_holder_terminals_survive_both(family: Family, holder: Holder) -> None:
    family.start(ONE, counting(7), pty=True)
    family.start(TWO, "stty -echo; read a; read b; echo $a $b; exit 9", pty=True)
    family.write(TWO, b"one\r")
    wanted = {"pty", "outr", "outw", "inr", "inw", "journal", "pidfd"}
    eventually(lambda: holder.names(ONE) == holder.names(TWO) == wanted)
    family.kill(family.anchor, family.keeper)
    holder.offer(family)
    check(family, ONE, 7)
    family.write(TWO, b"two\r", at=4)
    assert family.exit_of(TWO)["code"] == 9
    assert b"one two" in family.complete(TWO)


def test_with_a_third_holder_an_exit_in_between_is_known(family: Family, holder: Holder) -> None:
    family.start(ONE, "read x; echo last words; exit 33", stdin=True)
    eventually(lambda: "pidfd" in holder.names(ONE))
    family.write(ONE, b"go\n")
    family.kill(family.anchor, family.keeper)
    holder.offer(family)
    assert family.exit_of(ONE)["code"] == 33
    assert family.complete(ONE) == b"last words\n"


def test_holders_let_go_of_what_ended(family: Family, holder: Holder) -> None:
    family.start(ONE, "cat", stdin=True)
    eventually(lambda: "stdin" in holder.names(ONE))
    family.line.ask("close_stdin", id=ONE)
    # End of input is real only when everyone has let go of the write end.
    eventually(lambda: holder.names(ONE) == {"out", "pidfd"} or not holder.names(ONE))
    family.complete(ONE)
    eventually(lambda: holder.names(ONE) == set())


def test_an_exit_that_nobody_saw_is_said_to_be_unknown(family: Family) -> None:
    report = family.start(ONE, "sleep 300")
    for pid in (family.anchor, family.keeper):
        os.kill(pid, signal.SIGSTOP)
    for pid in (family.anchor, family.keeper, report["born"]["pid"]):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not os.path.exists(f"/proc/{report['born']['pid']}"))
    family.launch()
    eventually(family.reconnect)
    ended = family.exit_of(ONE)
    assert (ended["code"], ended["signal"], ended["witness"]) == (None, None, None)


def test_a_command_that_was_not_let_go_never_runs(family: Family, tmp_path: Path) -> None:
    """A bundle whose start a crash interrupted is removed, and the spare that was meant for it cannot claim it."""
    directory = f"{family.place}/live/{ONE}"
    os.mkdir(directory)
    Path(f"{directory}/{bundle.pending(1)}").write_bytes(bundle.encode_slot({"pid": 1}))
    family.kill(family.keeper)
    assert not os.path.exists(directory)
    assert family.line.ask("usage")["live"] == 0


def test_a_broken_bundle_harms_no_other(family: Family) -> None:
    family.start(ONE, counting(7))
    os.mkdir(f"{family.place}/live/{TWO}")
    Path(f"{family.place}/live/{TWO}/{bundle.STATE}").write_bytes(b"\xff garbage" * 100)
    family.kill(family.keeper)
    check(family, ONE, 7)


def test_a_place_that_was_left_can_be_taken_up_again(family: Family) -> None:
    family.line.ask("leave")
    family.line.close()
    eventually(lambda: not os.path.exists(f"{family.place}/keeper.sock"))
    family.launch()
    assert family.reconnect()["live"] == []
    family.start(ONE, "exit 5")
    assert family.exit_of(ONE)["code"] == 5


def test_without_a_daemon_and_without_work_the_family_ends(family: Family) -> None:
    family.start(ONE, "sleep 300")
    family.line.ask("leave")
    family.line.close()
    family.reconnect()
    family.line.ask("leave")
    family.stop(ONE, grace=0)
    family.line.close()
    eventually(lambda: not os.path.exists(f"/proc/{family.keeper}/exe"))
    eventually(lambda: not os.path.exists(f"{family.place}/keeper.sock"))
