"""A terminal is a real one."""

from __future__ import annotations

import os

from tests.keeper.driver import ONE, TWO, Family, named
from tests.support import eventually


def test_a_command_on_a_terminal_has_it_as_its_own(family: Family) -> None:
    family.start(ONE, "tty; stty size; ps -o tpgid= -p $$", pty=True)
    device, size, group = family.complete(ONE).decode().split("\r\n")[:3]
    assert device.startswith("/dev/pts/")
    assert size == "30 120"
    assert int(group) > 0


def test_a_resize_is_seen_by_the_command(family: Family) -> None:
    family.start(ONE, "trap 'stty size; exit' WINCH; echo go; while :; do sleep 0.05; done", pty=True)
    eventually(lambda: b"go" in family.output(ONE))
    family.line.ask("resize", id=ONE, cols=200, rows=50)
    assert b"50 200" in family.complete(ONE)


def test_enter_reaches_raw_and_line_mode(family: Family) -> None:
    read_one = "stty raw -echo; printf go; head -c 1 | od -An -tx1; stty sane"
    family.start(ONE, read_one, pty=True)
    eventually(lambda: b"go" in family.output(ONE))
    family.write(ONE, b"\r")
    assert b"0d" in family.complete(ONE)
    family.start(TWO, "read line; echo got:$line", pty=True)
    family.write(TWO, b"text\r")
    assert b"got:text" in family.complete(TWO)


def test_terminals_are_given_back(family: Family) -> None:
    before = len(os.listdir("/dev/pts"))
    for count in range(10):
        family.start(named(count), "echo x", pty=True)
    for count in range(10):
        family.complete(named(count))
    family.line.ask("usage")
    eventually(lambda: len(os.listdir("/dev/pts")) <= before)


def test_streams_are_kept_apart_where_asked(family: Family) -> None:
    family.start(ONE, "echo one; echo two >&2; echo three", split=True)
    assert family.complete(ONE) == b"one\nthree\n"
    assert family.output(ONE, "err") == b"two\n"


def test_merged_streams_keep_their_order(family: Family) -> None:
    family.start(ONE, "for i in $(seq 500); do echo $i; echo $i >&2; done")
    assert family.complete(ONE) == b"".join(b"%d\n%d\n" % (i, i) for i in range(1, 501))
