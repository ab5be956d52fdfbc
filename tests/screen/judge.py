"""tmux as the judge: the same bytes on a terminal of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import eventually


class Tmux:
    """A tmux server of one's own with one window, which shows the bytes of a file."""

    def __init__(self, directory: Path, data: bytes, cols: int, rows: int) -> None:
        self._socket = str(directory / "tmux.sock")
        (directory / "bytes").write_bytes(data)
        show = f"stty raw -echo; cat {directory / 'bytes'}; touch {directory / 'done'}; exec sleep 60"
        self._call("-f", "/dev/null", "new-session", "-d", "-x", str(cols), "-y", str(rows), show)
        self._done = directory / "done"

    def lines(self) -> list[str]:
        eventually(self._done.exists)
        seen: list[str] = []

        def rests() -> bool:
            before, seen[:] = list(seen), self._capture()
            return seen == before

        eventually(rests, pause=0.1)
        return seen

    def end(self) -> None:
        self._call("kill-server")

    def _capture(self) -> list[str]:
        return [line.rstrip() for line in self._call("capture-pane", "-p").splitlines()]

    def _call(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-S", self._socket, *words], capture_output=True, check=True)
        return done.stdout.decode()
