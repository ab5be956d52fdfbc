"""task-spooler, the leanest of the others: a queue in C."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.compare.install import debian_package
from bench.compare.peer import Peer, marked


def get(cache: Path) -> Callable[[Path], Peer]:
    return partial(Spooler, debian_package("tsp", "task-spooler"))


class Spooler(Peer):
    name = "task-spooler"

    def __init__(self, program: str, scratch: Path) -> None:
        super().__init__(scratch)
        self._program = program
        self.env |= {"TS_SOCKET": str(scratch / "socket"), "TMPDIR": str(scratch), "TS_SLOTS": "1000"}

    def open(self) -> None:
        self.wait(self.start("true"))

    def close(self) -> None:
        self.call(self._program, "-K")

    def start(self, text: str) -> str:
        return self.call(self._program, "bash", "-c", text).strip()

    def wait(self, key: str) -> int | None:
        return subprocess.run([self._program, "-w", key], env=self.env, capture_output=True, timeout=60).returncode

    def count(self) -> int:
        return self.call(self._program, "-l").count(" running ")

    def kill(self, key: str) -> None:
        self.call(self._program, "-k", key)

    def manager(self) -> list[int]:
        """The server has no command for its pid: it is the oldest of its processes, which a shell did not start."""
        return [pid for pid in marked(str(self.scratch)) if _program_of(pid) == os.path.realpath(self._program)][:1]

    def revive(self) -> None:
        self.call(self._program, "-l")

    def code(self, key: str) -> int | None:
        for line in self.call(self._program, "-l").splitlines():
            words = line.split()
            if words[:1] == [key] and words[1:2] == ["finished"]:
                return int(words[3])
        return None


def _program_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""
