"""Creates the bundle of a new command and opens its streams: everything up to the moment when the spare may exec.

Directory entries are what costs time on a busy disk. So most of a bundle is created ahead of time, as a nest, and a
start only renames it and adds what is specific to the command.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from typing import Any

from holdfast_keeper import bundle, held_command, kernel
from holdfast_keeper.fd_store import Descriptors
from holdfast_keeper.journal import Journal
from holdfast_keeper.limits import Paths, ProcessLimits, group_of
from holdfast_keeper.spare import Spare

Spec = dict[str, Any]


class Nest:
    """A bundle created ahead of time. Only the spare with this pid can claim it."""

    def __init__(self, directory: str, pid: int) -> None:
        self.directory = directory
        self.pid = pid
        os.mkdir(directory, 0o700)
        os.mkfifo(f"{directory}/{bundle.FIFO['out']}", 0o600)
        self.out = held_command.open_fifo(directory, "out")
        self._open: list[int] = []
        try:
            self._fill(pid)
        except OSError:
            self.discard()
            raise

    def _fill(self, pid: int) -> None:
        directory = self.directory
        self._spec = _create(f"{directory}/{bundle.SPEC}")
        self._open.append(self._spec)
        self._state = _create(f"{directory}/{bundle.pending(pid)}")
        self._open.append(self._state)
        _write(self._state, b" " * bundle.STATE_SIZE)

    def settle(self, spare: Spare) -> None:
        """Send the spare the output that nearly every command has. Raises OSError when the spare is dead."""
        # Read-write, so that a moment without a reader does not cause a SIGPIPE in the command.
        out = os.open(f"{self.directory}/{bundle.FIFO['out']}", os.O_RDWR | os.O_CLOEXEC)
        try:
            spare.settle(out)
        finally:
            os.close(out)

    def write_spec(self, spec: Spec) -> None:
        _write(self._spec, json.dumps(spec).encode())

    def write_born(self, born: bundle.Slot) -> None:
        os.pwrite(self._state, bundle.encode_slot(born), bundle.BORN * bundle.SLOT_SIZE)

    def close(self) -> None:
        """Close the files that are open for writing only. May be called twice."""
        for fd in self._open:
            os.close(fd)
        self._open.clear()

    def discard(self) -> None:
        self.close()
        os.close(self.out)
        with contextlib.suppress(OSError):  # a read-only disk: the next keeper removes it
            bundle.remove(self.directory)


class Launch:
    """A command that a spare is about to become."""

    def __init__(self, process_id: str, directory: str, spec: Spec, nest: Nest) -> None:
        self.id = process_id
        self.directory = directory
        self.spec = spec
        self.fds: Descriptors = {}
        self.born: bundle.Slot = {}
        #: Ends that only the command keeps, open here until it has them.
        self._for_command: list[int] = []
        self._nest = nest
        #: The groups that limit it, by controller.
        self.limits: Paths = {}
        #: The command's end of its terminal, where it has one.
        self.terminal: int | None = None
        #: What is added to the record of its start.
        self._also_born: bundle.Slot = {"run": 0}

    def prepare(self) -> None:
        """Rename the nest and open the streams. Raises OSError; `give_up` then removes what was created."""
        if self.spec["pty"]:
            os.close(self._nest.out)
        else:
            self.fds["out"] = self._nest.out
        self._move_in()
        if self.spec["pty"]:
            self._open_terminal()
        else:
            self._open_pipes()

    def limit(self, limits: ProcessLimits) -> None:
        """Create the cgroups that it will join. Raises OSError when the kernel does not accept such a limit."""
        if self.spec.get("limits"):
            self.limits = limits.make(self.spec["limits"])

    def write_spec(self) -> None:
        """Write the spec for the spare, with the cgroups that it has to join."""
        self._write_spec({**self.spec, "join": sorted(set(self.limits.values()))})

    def write_born(self, spare: Spare) -> None:
        """Record the identity of the command. It counts only once the spare has claimed the bundle."""
        spec = self.spec
        self.born = {
            "pid": spare.pid,
            "start": spare.start,
            "boot": kernel.boot_id(),
            "at": time.time(),
            "group": group_of(self.limits, spare.group),
            "pty": spec["pty"],
            "split": spec["split"],
            "stdin": spec["stdin"] or spec["pty"],
            "cap": spec["log_cap"],
            **self._also_born,
        }
        if self.limits:
            self.born["limits"] = self.limits
        self.fds["pidfd"] = spare.pidfd
        try:
            self._nest.write_born(self.born)
        except ValueError:
            raise OSError(errno.ENAMETOOLONG, "the names of its cgroups are too long to be recorded") from None
        self._nest.close()

    def started(self) -> None:
        """The command has its own ends now: close ours."""
        for fd in self._for_command:
            os.close(fd)
        self._for_command.clear()

    def give_up(self) -> None:
        """Close and remove everything."""
        self._close()
        for directory in (self._nest.directory, self.directory):
            bundle.remove(directory)

    def _close(self) -> None:
        self.started()
        self._nest.close()
        for fd in self.fds.values():
            os.close(fd)
        self.fds.clear()

    def _move_in(self) -> None:
        os.rename(self._nest.directory, self.directory)

    def _write_spec(self, spec: Spec) -> None:
        self._nest.write_spec(spec)

    def _make_fifo(self, name: str) -> str:
        path = f"{self.directory}/{name}"
        os.mkfifo(path, 0o600)
        return path

    def _open_terminal(self) -> None:
        self.fds["pty"], self.terminal = os.openpty()
        self._for_command.append(self.terminal)
        master = self.fds["pty"]
        kernel.set_window_size(master, self.spec["cols"], self.spec["rows"])
        self.fds["outr"], self.fds["outw"] = os.pipe()
        self.fds["inr"], self.fds["inw"] = os.pipe()
        for fd in self.fds.values():
            os.set_blocking(fd, False)
        self.fds["journal"] = Journal.create().fd

    def _open_pipes(self) -> None:
        if self.spec["split"]:
            self._make_fifo(bundle.FIFO["err"])
            self.fds["err"] = held_command.open_fifo(self.directory, "err")
        if self.spec["stdin"]:
            fifo = self._make_fifo(bundle.STDIN)
            # With a reader of our own, the write end opens at once; the command opens its own.
            self._for_command.append(os.open(fifo, os.O_RDWR | os.O_CLOEXEC))
            self.fds["stdin"] = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self.fds["journal"] = Journal.create().fd


def _create(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _write(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
