"""The pump of a terminal, against a kernel that tells of the end too early."""

from __future__ import annotations

import errno
import os
import pty
from pathlib import Path

import pytest

from holdfast_keeper import bundle
from holdfast_keeper.pump import TerminalPump
from holdfast_keeper.quota import Quota
from holdfast_keeper.segments import Segments


def test_what_was_written_just_before_the_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux may say EIO to a read that began before the last write, with that write still to be read."""
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
    os.write(slave, b"last words\n")
    os.close(slave)
    monkeypatch.setattr(os, "splice", splice)
    try:
        pump.move()
        assert pump.closed
        assert Path(bundle.segment_path(str(tmp_path), "out", 0)).read_bytes() == b"last words\r\n"
    finally:
        log.close()
        for fd in (master, *pipe):
            os.close(fd)
