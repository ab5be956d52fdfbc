"""Which process reads a terminal or a pipe: by the system call, by where a thread sleeps, and when neither is shown."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.machine import proc, readers
from holdfast.machine.readers import IsInput, reader_of
from tests.support import eventually


@contextmanager
def on_terminal(*argv: str) -> Iterator[tuple[int, IsInput]]:
    ours, theirs = pty.openpty()
    number = int(os.ttyname(theirs).rpartition("/")[2])
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        try:
            yield process.pid, readers.is_terminal(number)
        finally:
            process.kill()
            os.close(ours)
            os.close(theirs)


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """As where the kernel does not show these files."""
    read = proc.read
    hidden = re.compile(f"/({'|'.join(names)})$")
    monkeypatch.setattr(proc, "read", lambda pid, name: b"" if hidden.search(name) else read(pid, name))


@pytest.mark.parametrize("hidden", [(), ("syscall",)])
def test_a_reader_is_seen(monkeypatch: pytest.MonkeyPatch, hidden: tuple[str, ...]) -> None:
    without(monkeypatch, *hidden) if hidden else None
    with on_terminal("cat") as (pid, is_input):
        eventually(lambda: reader_of([pid], is_input) == "reading")
        assert reader_of([pid], is_input, os.getpgid(pid)) == "reading"
        assert reader_of([pid], is_input, os.getpgid(0)) == "busy"  # not in the foreground
        assert reader_of([pid], readers.is_terminal(99999)) == "busy"  # another terminal


@pytest.mark.parametrize("hidden", [(), ("syscall",)])
def test_polling_differs_from_reading(monkeypatch: pytest.MonkeyPatch, hidden: tuple[str, ...]) -> None:
    without(monkeypatch, *hidden) if hidden else None
    poll = "import select; select.select([0], [], [])"
    with on_terminal(sys.executable, "-c", poll) as (pid, is_input):
        eventually(lambda: reader_of([pid], is_input) == "polling")
    with on_terminal("sleep", "1000") as (pid, is_input):
        eventually(lambda: b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes())
        assert reader_of([pid], is_input) == "busy"


def test_a_process_that_may_not_be_read_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "syscall", "wchan")
    with on_terminal("cat") as (pid, is_input):
        eventually(lambda: readers._sleeps(pid))
        assert reader_of([pid], is_input) == "busy"  # it may be read, and shows nothing
        monkeypatch.setattr(readers, "_may_look", lambda pid: False)
        assert reader_of([pid], is_input) == "hidden"


@pytest.mark.parametrize("hidden", [(), ("syscall",)])
def test_the_reader_of_a_pipe_is_seen(monkeypatch: pytest.MonkeyPatch, hidden: tuple[str, ...]) -> None:
    without(monkeypatch, *hidden) if hidden else None
    theirs, ours = os.pipe()
    with subprocess.Popen(["cat"], stdin=theirs, stdout=subprocess.DEVNULL) as process:
        eventually(lambda: reader_of([process.pid], readers.is_pipe(ours)) == "reading")
        os.close(ours)
        os.close(theirs)


def test_a_dead_process_reads_nothing() -> None:
    assert reader_of([1 << 22, 0, -1], readers.is_terminal(0)) == "busy"
