"""Creates the bundle of a new command, or of the next run of one, and opens its streams: everything before the fork."""

from __future__ import annotations

import itertools
import json
import os
import time
from typing import Any, NamedTuple

from holdfast_keeper import bundle, failpoints, held_command, kernel
from holdfast_keeper.bundle import KeeperDir
from holdfast_keeper.fd_store import Descriptors
from holdfast_keeper.journal import Journal
from holdfast_keeper.limits import Paths, ProcessLimits, group_of

Spec = dict[str, Any]


class Program(NamedTuple):
    """What a command executes, byte for byte."""

    argc: int
    block: bytes
    """Arguments, then variables, each ended by a zero byte."""
    text: bytes
    """The whole spec as JSON, as it is stored."""

    @classmethod
    def of_spec(cls, spec: Spec) -> Program:
        """Raises ValueError where an argument or variable cannot be passed to a program."""
        words = [*spec["argv"], *(f"{name}={value}" for name, value in spec["env"].items())]
        block = os.fsencode("\0".join([*words, ""]))
        if block.count(b"\0") != len(words):
            raise ValueError("embedded null byte")
        return cls(len(spec["argv"]), block, json.dumps(spec).encode())

    @property
    def name(self) -> str:
        return os.fsdecode(self.block.partition(b"\0")[0])


_numbers = itertools.count(1)
_BLANK = b" " * bundle.STATE_SIZE


class Launch:
    """A command that is about to run."""

    def __init__(self, process_id: str, directory: str, spec: Spec, program: Program) -> None:
        self.id = process_id
        self.directory = directory
        self.spec = spec
        self.program = program
        self.fds: Descriptors = {}
        self.born: bundle.Slot = {}
        #: Unique, so that the child of a start that was given up cannot claim the bundle of the next one.
        self.pending = bundle.pending(f"{os.getpid()}-{next(_numbers)}")
        #: Ends that only the command keeps, open here until it has them.
        self._for_command: list[int] = []
        #: The groups that limit it, by controller.
        self.limits: Paths = {}
        #: The command's end of its terminal, where it has one.
        self.terminal: int | None = None
        #: What is added to the record of its start.
        self._also_born: bundle.Slot = {"run": 0}

    def prepare(self, limits: ProcessLimits, group: str | None) -> None:
        """Create the bundle and open the streams. Raises OSError; `give_up` then removes what was created."""
        self._make_directory()
        if self.spec["pty"]:
            self._open_terminal()
        else:
            self._open_pipes()
        if self.spec.get("limits"):
            self.limits = limits.make(self.spec["limits"])
        self._write_spec()
        bundle.create(f"{self.directory}/{self.pending}", _BLANK)
        self._describe(group)

    @property
    def joins(self) -> list[str]:
        """The groups that limit it."""
        return sorted(set(self.limits.values()))

    def started(self) -> None:
        """The command has its own ends now: close ours."""
        for fd in self._for_command:
            os.close(fd)
        self._for_command.clear()

    def give_up(self) -> None:
        """Close and remove everything."""
        self._close()
        bundle.remove(self.directory)

    def _describe(self, group: str | None) -> None:
        """The identity of the command, but for pid and start time. It counts once the child has claimed the bundle."""
        spec = self.spec
        self.born = {
            "boot": kernel.boot_id(),
            "at": time.time(),
            "group": group_of(self.limits, group),
            "pty": spec["pty"],
            "split": spec["split"],
            "stdin": spec["stdin"] or spec["pty"],
            "cap": spec["log_cap"],
            **self._also_born,
        }
        if self.limits:
            self.born["limits"] = self.limits

    def _close(self) -> None:
        self.started()
        for fd in self.fds.values():
            os.close(fd)
        self.fds.clear()

    def _make_directory(self) -> None:
        os.mkdir(self.directory, 0o700)

    def _write_spec(self) -> None:
        bundle.create(f"{self.directory}/{bundle.SPEC}", self.program.text)

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
        for name in ("out", "err") if self.spec["split"] else ("out",):
            self._make_fifo(bundle.FIFO[name])
            self.fds[name] = held_command.open_fifo(self.directory, name)
        if self.spec["stdin"]:
            fifo = self._make_fifo(bundle.STDIN)
            # With a reader of our own, the write end opens at once; the command opens its own.
            self._for_command.append(os.open(fifo, os.O_RDWR | os.O_CLOEXEC))
            self.fds["stdin"] = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self.fds["journal"] = Journal.create().fd


class Relaunch(Launch):
    """The next run of a command, in its bundle: the log continues, the state is new.

    At every moment the bundle records either the last run or the claimed next one. The old state is set aside, not
    overwritten, and is restored when the next run never starts. `born` is added to the record of the start.
    """

    def __init__(self, process_id: str, keeper_dir: KeeperDir, spec: Spec, program: Program, born: bundle.Slot) -> None:
        super().__init__(process_id, keeper_dir.live(process_id), spec, program)
        self._done_directory = keeper_dir.done(process_id)
        self._also_born = born

    def give_up(self) -> None:
        """Put the bundle back as the last run left it."""
        self._close()
        if os.path.isdir(self.directory):
            bundle.void_pending(self.directory)
            if not os.path.exists(f"{self.directory}/{bundle.STATE}"):
                bundle.restore_state(self.directory)
            os.rename(self.directory, self._done_directory)

    def _make_directory(self) -> None:
        if not os.path.isdir(self.directory):
            os.rename(self._done_directory, self.directory)
        failpoints.reach("rerun-moved")
        bundle.set_state_aside(self.directory, self._also_born["run"] - 1)
        failpoints.reach("rerun-state-aside")

    def _write_spec(self) -> None:
        """It stays the same."""
        failpoints.reach("rerun-files-made")

    def _make_fifo(self, name: str) -> str:
        """Rename it over the old one, so that there always is one: a new keeper opens it by name."""
        path = f"{self.directory}/{name}"
        bundle.unlink(f"{path}.new")
        os.mkfifo(f"{path}.new", 0o600)
        os.rename(f"{path}.new", path)
        return path
