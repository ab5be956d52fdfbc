"""A terminal is a real one."""

from __future__ import annotations

import os

from tests.keeper.driver import ONE, TWO, KeeperPair, named
from tests.support import eventually


def test_a_command_controls_its_terminal(pair: KeeperPair) -> None:
    pair.start(ONE, "tty; stty size; ps -o tpgid= -p $$", pty=True)
    device, size, group = pair.complete(ONE).decode().split("\r\n")[:3]
    assert device.startswith("/dev/pts/")
    assert size == "30 120"
    assert int(group) > 0


def test_a_resize_is_seen_by_the_command(pair: KeeperPair) -> None:
    pair.start(ONE, "trap 'stty size; exit' WINCH; echo go; while :; do sleep 0.05; done", pty=True)
    eventually(lambda: b"go" in pair.output(ONE))
    pair.control.ask("resize", id=ONE, cols=200, rows=50)
    assert b"50 200" in pair.complete(ONE)


def test_enter_reaches_raw_and_line_mode(pair: KeeperPair) -> None:
    read_one = "stty raw -echo; printf go; head -c 1 | od -An -tx1; stty sane"
    pair.start(ONE, read_one, pty=True)
    eventually(lambda: b"go" in pair.output(ONE))
    pair.write(ONE, b"\r")
    assert b"0d" in pair.complete(ONE)
    pair.start(TWO, "read line; echo got:$line", pty=True)
    pair.write(TWO, b"text\r")
    assert b"got:text" in pair.complete(TWO)


def test_terminals_are_closed(pair: KeeperPair) -> None:
    before = len(os.listdir("/dev/pts"))
    for count in range(10):
        pair.start(named(count), "echo x", pty=True)
    for count in range(10):
        pair.complete(named(count))
    pair.control.ask("usage")
    eventually(lambda: len(os.listdir("/dev/pts")) <= before)


def test_split_streams_have_separate_logs(pair: KeeperPair) -> None:
    pair.start(ONE, "echo one; echo two >&2; echo three", split=True)
    assert pair.complete(ONE) == b"one\nthree\n"
    assert pair.output(ONE, "err") == b"two\n"


def test_merged_streams_keep_their_order(pair: KeeperPair) -> None:
    pair.start(ONE, "for i in $(seq 500); do echo $i; echo $i >&2; done")
    assert pair.complete(ONE) == b"".join(b"%d\n%d\n" % (i, i) for i in range(1, 501))
