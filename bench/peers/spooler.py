"""task-spooler, the leanest of the peers: a queue in C. Its client is a program, so its start includes one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from types import TracebackType

from bench.compare.install import Unavailable, debian_package


def install_spooler() -> bool:
    """Whether it is there; installed from Debian the first time, where we may."""
    try:
        debian_package("tsp", "task-spooler")
    except Unavailable as why:
        print(f"bench: {why}", file=sys.stderr)
        return False
    return True


class Spooler:
    """A server of our own."""

    def __enter__(self) -> Spooler:
        self._home = tempfile.TemporaryDirectory(prefix="holdfast-bench-tsp-")
        self._env = {**os.environ, "TS_SOCKET": f"{self._home.name}/socket", "TMPDIR": self._home.name}
        self.start(["true"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call("-K")
        self._home.cleanup()

    def start(self, argv: list[str]) -> float:
        """Seconds until the id is printed; the command has ended when this returns."""
        begun = time.monotonic()
        self._call(*argv)
        took = time.monotonic() - begun
        self._call("-w")
        return took

    def _call(self, *words: str) -> None:
        subprocess.run(["tsp", *words], env=self._env, stdout=subprocess.PIPE, check=False)
