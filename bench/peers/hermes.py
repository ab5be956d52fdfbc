"""hermes-agent, the predecessor: its process registry, in a process and a virtual environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.cache import cached
from bench.compare.install import HERMES as VERSION
from bench.compare.install import Unavailable, cache, python_package

WORKER = Path(__file__).with_name("hermes_worker.py")


def install_hermes() -> bool:
    """Whether it is there; installed from the package index the first time."""
    try:
        python_package(cache(), f"hermes-agent=={VERSION}")
    except Unavailable as why:
        print(f"bench: {why}", file=sys.stderr)
        return False
    return True


class Hermes:
    """The registry, warm. Times are taken inside its process, so that our asking costs it nothing."""

    def __enter__(self) -> Hermes:
        self._home = tempfile.TemporaryDirectory(prefix="holdfast-bench-hermes-")
        self._worker = subprocess.Popen(
            [str(cached(f"hermes-{VERSION}") / "bin/python"), str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HERMES_HOME": self._home.name},
            cwd=self._home.name,
            text=True,
        )
        for _ in range(3):
            self.start("true")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._worker.stdin and self._worker.stdout
        self._worker.stdin.close()
        self._worker.wait(timeout=30)
        self._worker.stdout.close()
        self._home.cleanup()

    def start(self, command: str) -> float:
        """Seconds from the call until the session is returned; the command has ended when this returns."""
        return float(self._ask(command)["start"])

    def known_at(self, command: str) -> int:
        """When `wait` returned the exit of a command, on the monotonic clock, in nanoseconds."""
        return int(self._ask(command)["known_at"])

    def flood(self, command: str) -> tuple[float, float]:
        """Wall and CPU seconds of the registry for reading all that a command prints."""
        answer = self._ask(command)
        return float(answer["wall"]), float(answer["cpu"])

    def _ask(self, command: str) -> Any:
        assert self._worker.stdin and self._worker.stdout
        self._worker.stdin.write(json.dumps(command) + "\n")
        self._worker.stdin.flush()
        return json.loads(self._worker.stdout.readline())
