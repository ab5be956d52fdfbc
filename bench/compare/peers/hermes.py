"""hermes-agent, the predecessor: its process registry, in a process and a virtual environment of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.compare.install import HERMES, python_package
from bench.compare.peer import Peer

_WORKER = Path(__file__).with_name("hermes_worker.py")


def get(cache: Path) -> Callable[[Path], Peer]:
    return partial(Hermes, python_package(cache, f"hermes-agent=={HERMES}") / "python")


class Hermes(Peer):
    name = f"hermes-agent {HERMES}"
    asked_by = "python"

    def __init__(self, python: Path, scratch: Path) -> None:
        super().__init__(scratch)
        self._python = python
        self.env["HERMES_HOME"] = str(scratch)

    def open(self) -> None:
        self._worker = subprocess.Popen(
            [self._python, _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.env,
            cwd=self.scratch,
            text=True,
        )
        self._ask("count")

    def close(self) -> None:
        assert self._worker.stdin and self._worker.stdout
        self._worker.kill()
        self._worker.wait()
        self._worker.stdin.close()
        self._worker.stdout.close()

    def start(self, text: str) -> str:
        return self.timed_start(text)[0]

    def timed_start(self, text: str) -> tuple[str, float]:
        """Timed in its own process, so that our asking costs it nothing."""
        answer = self._ask("start", text)
        return answer["id"], answer["took"]

    def wait(self, key: str) -> int | None:
        code: int | None = self._ask("wait", key)
        return code

    def count(self) -> int:
        return int(self._ask("count"))

    def kill(self, key: str) -> None:
        self._ask("kill", key)

    def manager(self) -> list[int]:
        return [self._worker.pid]

    def revive(self) -> None:
        self.close()
        self.open()
        self._ask("recover")

    def code(self, key: str) -> int | None:
        code: int | None = self._ask("code", key)
        return code

    def _ask(self, op: str, argument: str = "") -> Any:
        assert self._worker.stdin and self._worker.stdout
        self._worker.stdin.write(json.dumps([op, argument]) + "\n")
        self._worker.stdin.flush()
        return json.loads(self._worker.stdout.readline())
