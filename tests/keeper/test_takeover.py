"""Takeover: when the anchor, the keeper or both are killed, output and exit codes stay exact."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast_keeper import bundle
from holdfast_keeper.connections import DescriptorStore, receive_datagram, send_datagram
from tests.chaos.parts import parent_of
from tests.keeper.driver import ONE, TWO, KeeperPair, Refused, connect
from tests.support import eventually, is_alive

COUNT = 400
NUMBERS = b"".join(b"line %d\n" % number for number in range(COUNT))


def counting(code: int) -> str:
    return f"for ((i = 0; i < {COUNT}; i++)); do echo line $i; sleep 0.003; done; exit {code}"


def check(pair: KeeperPair, process_id: str, code: int) -> None:
    assert pair.exit_of(process_id)["code"] == code
    assert pair.complete(process_id).replace(b"\r\n", b"\n") == NUMBERS


@pytest.mark.parametrize("who", ["keeper", "anchor"])
def test_a_kill_of_keeper_or_anchor_loses_nothing(pair: KeeperPair, who: str) -> None:
    pair.start(ONE, counting(7))
    pair.start(TWO, counting(8), pty=True)
    for _ in range(4):
        pair.kill(getattr(pair, who))
    check(pair, ONE, 7)
    check(pair, TWO, 8)


def test_a_kill_of_both_loses_nothing_of_a_command_on_pipes(pair: KeeperPair) -> None:
    pair.start(ONE, counting(7))
    pair.kill(pair.anchor, pair.keeper)
    check(pair, ONE, 7)


def test_a_newer_release_takes_over_and_is_the_parent_of_every_command(pair: KeeperPair) -> None:
    commands = [pair.start(ONE, counting(7)), pair.start(TWO, counting(8), pty=True)]
    keeper, anchor = pair.keeper, pair.anchor
    for release in ("98.0", "99.0"):
        assert pair.renew(release)["release"] == release
    assert pair.anchor == anchor
    assert pair.keeper != keeper
    assert {parent_of(command["born"]["pid"]) for command in commands} <= {pair.anchor, pair.keeper}
    pair.kill(pair.keeper)
    assert pair.reconnect()["release"] == "99.0"
    check(pair, ONE, 7)
    check(pair, TWO, 8)


@pytest.mark.full
def test_an_exit_during_the_upgrade_is_recorded(pair: KeeperPair) -> None:
    for number in range(10):
        process_id = f"{ONE}_{number}"
        pair.start(process_id, f"read x; echo last line; exit {number}", stdin=True)
        pair.write(process_id, b"go\n")
        pair.renew(f"99.{number}")
        assert pair.exit_of(process_id)["code"] == number
        assert pair.complete(process_id) == b"last line\n"


def test_a_release_that_cannot_be_executed_changes_nothing(pair: KeeperPair) -> None:
    pair.start(ONE, counting(7))
    keeper, anchor = pair.keeper, pair.anchor
    pair.control.ask("renew", argv=["/nonexistent/python"])
    eventually(lambda: not is_alive(keeper))
    pair.reconnect()
    assert pair.anchor == anchor
    check(pair, ONE, 7)
    for argv in ([], ["/bin/true", 7], None):
        with pytest.raises(Refused):
            pair.control.ask("renew", argv=argv)


def test_the_anchor_records_an_exit_between_two_keepers(pair: KeeperPair) -> None:
    """On any kernel: the anchor is the parent then, and records what it reaps."""
    pair.start(ONE, "read x; echo last line; exit 33", stdin=True)
    pair.write(ONE, b"go\n")
    os.kill(pair.keeper, signal.SIGKILL)
    assert pair.reconnect() and pair.exit_of(ONE)["code"] == 33
    assert pair.complete(ONE) == b"last line\n"


def test_a_holder_that_had_just_connected_when_the_anchor_was_killed_is_cut_off(pair: KeeperPair) -> None:
    """It would wait for descriptors for ever, on a connection that no process reads."""
    holder = connect(pair.place, "depot.sock", socket.SOCK_SEQPACKET)
    assert holder is not None
    with holder:
        for _ in range(2):  # the keeper has accepted the holder, which has not offered anything yet
            pair.control.ask("usage")
        pair.kill(pair.anchor)
        holder.settimeout(10)
        assert receive_datagram(holder) is None


def test_what_a_process_sent_before_it_was_killed_is_received_though_it_had_not_read_all() -> None:
    """The kernel reports the reset first, and what was sent is behind it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, open(os.devnull) as file:
        send_datagram(ours, {"op": "unread"}, [])
        for name in ("one", "two"):
            send_datagram(theirs, {"op": "hold", "names": [name]}, [file.fileno()])
        theirs.close()
        ours.setblocking(False)
        for name in ("one", "two"):
            received = receive_datagram(ours)
            assert received is not None
            header, (fd,) = received
            assert header["names"] == [name]
            assert os.path.sameopenfile(fd, file.fileno())
            os.close(fd)
        assert receive_datagram(ours) is None


def test_input_continues_with_the_next_byte(pair: KeeperPair) -> None:
    pair.start(ONE, "cat; exit 3", stdin=True)
    pair.start(TWO, "stty raw -echo; echo ready; head -c 40000; exit 4", pty=True)
    eventually(lambda: b"ready" in pair.output(TWO))
    data = b"".join(b"%07d\n" % number for number in range(5000))
    for at in range(0, len(data), 8000):
        for process_id in (ONE, TWO):
            assert pair.write(process_id, data[at : at + 8000], at) == at + 8000
        pair.kill(pair.keeper if at % 16000 else pair.anchor)
    pair.control.ask("close_stdin", id=ONE)
    assert pair.exit_of(ONE)["code"] == 3
    assert pair.complete(ONE) == data
    assert pair.exit_of(TWO)["code"] == 4
    assert pair.complete(TWO).partition(b"ready")[2].lstrip(b"\r\n") == data


class Holder:
    """A third holder of descriptors, in the role of the daemon."""

    def __init__(self, pair: KeeperPair) -> None:
        self._store = DescriptorStore()
        self._sock = self._connect(pair)
        send_datagram(self._sock, {"op": "offered"}, [])

    def names(self, process_id: str) -> set[str]:
        while True:
            try:
                received = receive_datagram(self._sock)
            except BlockingIOError:
                return set(self._store.held.get(process_id, {}))
            if received is None:
                return set(self._store.held.get(process_id, {}))
            header, fds = received
            if header["op"] == "hold":
                self._store.hold(header["id"], header["names"], fds)
            else:
                self._store.drop(header["id"], header["names"])

    def offer(self, pair: KeeperPair) -> None:
        self._sock.close()
        self._sock = self._connect(pair)
        for process_id, fds in self._store.held.items():
            header = {"op": "offer", "id": process_id, "names": list(fds)}
            send_datagram(self._sock, header, list(fds.values()))
        send_datagram(self._sock, {"op": "offered"}, [])

    def close(self) -> None:
        self._sock.close()
        for process_id in list(self._store.held):
            self._store.drop(process_id, None)

    def _connect(self, pair: KeeperPair) -> socket.socket:
        sock = eventually(lambda: connect(pair.place, "depot.sock", socket.SOCK_SEQPACKET))
        sock.setblocking(False)
        return sock


@pytest.fixture
def holder(pair: KeeperPair) -> Iterator[Holder]:
    holder = Holder(pair)
    yield holder
    holder.close()


def test_with_a_third_holder_terminals_survive_both(pair: KeeperPair, holder: Holder) -> None:
    pair.start(ONE, counting(7), pty=True)
    pair.start(TWO, "stty -echo; read a; read b; echo $a $b; exit 9", pty=True)
    pair.write(TWO, b"one\r")
    names = {"pty", "outr", "outw", "inr", "inw", "journal", "pidfd"}
    eventually(lambda: holder.names(ONE) == holder.names(TWO) == names)
    pair.kill(pair.anchor, pair.keeper)
    holder.offer(pair)
    check(pair, ONE, 7)
    pair.write(TWO, b"two\r", at=4)
    assert pair.exit_of(TWO)["code"] == 9
    assert b"one two" in pair.complete(TWO)


def test_with_a_third_holder_an_exit_in_between_is_known(pair: KeeperPair, holder: Holder) -> None:
    pair.start(ONE, "read x; echo last line; exit 33", stdin=True)
    eventually(lambda: "pidfd" in holder.names(ONE))
    pair.write(ONE, b"go\n")
    pair.kill(pair.anchor, pair.keeper)
    holder.offer(pair)
    assert pair.exit_of(ONE)["code"] == 33
    assert pair.complete(ONE) == b"last line\n"


def test_holders_close_the_descriptors_of_ended_commands(pair: KeeperPair, holder: Holder) -> None:
    pair.start(ONE, "cat", stdin=True)
    eventually(lambda: "stdin" in holder.names(ONE))
    pair.control.ask("close_stdin", id=ONE)
    # The command reads end of file only when every holder has closed the write end.
    eventually(lambda: holder.names(ONE) == {"out", "pidfd"} or not holder.names(ONE))
    pair.complete(ONE)
    eventually(lambda: holder.names(ONE) == set())


def test_an_exit_without_keeper_and_anchor_is_unknown(pair: KeeperPair) -> None:
    report = pair.start(ONE, "sleep 300")
    for pid in (pair.anchor, pair.keeper):
        os.kill(pid, signal.SIGSTOP)
    for pid in (pair.anchor, pair.keeper, report["born"]["pid"]):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not os.path.exists(f"/proc/{report['born']['pid']}"))
    pair.launch()
    eventually(pair.reconnect)
    ended = pair.exit_of(ONE)
    assert (ended["code"], ended["signal"], ended["witness"]) == (None, None, None)


def test_a_command_whose_bundle_was_voided_never_runs(pair: KeeperPair, tmp_path: Path) -> None:
    """A bundle whose start a crash interrupted is removed, and the child that was meant for it cannot claim it."""
    directory = f"{pair.place}/live/{ONE}"
    os.mkdir(directory)
    Path(f"{directory}/{bundle.pending('1')}").write_bytes(bundle.encode_slot({"pid": 1}))
    pair.kill(pair.keeper)
    assert not os.path.exists(directory)
    assert pair.control.ask("usage")["live"] == 0


def test_a_broken_bundle_harms_no_other(pair: KeeperPair) -> None:
    pair.start(ONE, counting(7))
    os.mkdir(f"{pair.place}/live/{TWO}")
    Path(f"{pair.place}/live/{TWO}/{bundle.STATE}").write_bytes(b"\xff garbage" * 100)
    pair.kill(pair.keeper)
    check(pair, ONE, 7)


def test_a_directory_can_be_used_again_after_leave(pair: KeeperPair) -> None:
    pair.control.ask("leave")
    pair.control.close()
    eventually(lambda: not os.path.exists(f"{pair.place}/keeper.sock"))
    pair.launch()
    assert pair.reconnect()["live"] == []
    pair.start(ONE, "exit 5")
    assert pair.exit_of(ONE)["code"] == 5


def test_without_a_daemon_and_commands_anchor_and_keeper_exit(pair: KeeperPair) -> None:
    pair.start(ONE, "sleep 300")
    pair.control.ask("leave")
    pair.control.close()
    pair.reconnect()
    pair.control.ask("leave")
    pair.stop(ONE, grace=0)
    pair.control.close()
    eventually(lambda: not os.path.exists(f"/proc/{pair.keeper}/exe"))
    eventually(lambda: not os.path.exists(f"{pair.place}/keeper.sock"))
