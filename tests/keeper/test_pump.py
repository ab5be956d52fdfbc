"""Pumps: floods get equal shares; a terminal has ended when its hangup is seen twice."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import select
from pathlib import Path

import pytest

from holdfast_keeper import bundle
from holdfast_keeper.output import PipePump, Quota, Segments, TerminalPump


def test_output_written_just_before_the_hangup_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux may return EIO to a read that began before the last write, though that write can still be read."""
    master, slave = pty.openpty()
    pipe = os.pipe()
    for fd in (master, *pipe):
        os.set_blocking(fd, False)
    really = os.splice
    early = [OSError(errno.EIO, "early")]

    def splice(source: int, target: int, count: int) -> int:
        if source == master and early:
            raise early.pop()
        return really(source, target, count)

    log = Segments(str(tmp_path), "out", 1 << 20, Quota(1 << 20))
    pump = TerminalPump(master, pipe, log)
    os.write(slave, b"last line\n")
    os.close(slave)
    monkeypatch.setattr(os, "splice", splice)
    try:
        pump.move()
        assert pump.closed
        assert Path(bundle.segment_path(str(tmp_path), "out", 0)).read_bytes() == b"last line\r\n"
    finally:
        log.close()
        for fd in (master, *pipe):
            os.close(fd)


def test_output_that_poll_has_not_seen_before_the_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux looks for output first and for writers afterwards: what is written in between is reported as the end."""
    source, target = os.pipe()
    os.set_blocking(source, False)
    os.write(target, b"last line\n")
    os.close(target)

    class EarlyPoll:
        def register(self, fd: int, events: int) -> None:
            return

        def poll(self, timeout: float) -> list[tuple[int, int]]:
            return [(source, select.POLLHUP)]

    log = Segments(str(tmp_path), "out", 1 << 20, Quota(1 << 20), is_new=True)
    pump = PipePump(source, log)
    monkeypatch.setattr(select, "poll", EarlyPoll)
    try:
        assert not pump.hung_up()
        assert pump.drain() == 10
        assert Path(bundle.segment_path(str(tmp_path), "out", 0)).read_bytes() == b"last line\n"
        assert pump.hung_up()
    finally:
        log.close()
        os.close(source)


def fill(pipe: int) -> int:
    """Fill the pipe. Returns how many bytes went in."""
    total = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            total += os.write(pipe, bytes(4096))
    return total


def test_a_flood_is_detected_with_long_pauses_between_moves(tmp_path: Path) -> None:
    """With any pause between two moves, a pipe that is half full again shows that it is a flood."""
    source, target = os.pipe()
    for fd in (source, target):
        os.set_blocking(fd, False)
    log = Segments(str(tmp_path), "out", 64 << 20, Quota(None))
    pump = PipePump(source, log)
    try:
        for turn in range(17):
            fill(target)
            pump.move()
            pump.pause(float(turn))
        assert fcntl.fcntl(source, fcntl.F_GETPIPE_SZ) == 1 << 20
        before = log.end
        share = fill(target)
        pump.move()
        assert log.end - before == share == 1 << 20
        assert pump.pause(20.0) == 0.0
    finally:
        log.close()
        for fd in (source, target):
            os.close(fd)


def test_small_rare_writes_are_no_flood(tmp_path: Path) -> None:
    source, target = os.pipe()
    os.set_blocking(source, False)
    log = Segments(str(tmp_path), "out", 64 << 20, Quota(None))
    pump = PipePump(source, log)
    try:
        for turn in range(50):
            os.write(target, bytes(4096))
            pump.move()
            assert pump.pause(float(turn)) == 0.0
        assert fcntl.fcntl(source, fcntl.F_GETPIPE_SZ) == 64 << 10
    finally:
        log.close()
        for fd in (source, target):
            os.close(fd)
