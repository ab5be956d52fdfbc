"""tmux, with a session for each command and panes that remain after the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.compare.install import debian_package
from bench.compare.peer import Peer, until


def get(cache: Path) -> Callable[[Path], Peer]:
    return partial(Tmux, debian_package("tmux", "tmux"))


class Tmux(Peer):
    name = "tmux"

    def __init__(self, program: str, scratch: Path) -> None:
        super().__init__(scratch)
        self._program = program
        self._count = 0
        self.env.pop("TMUX", None)

    def open(self) -> None:
        (self.scratch / "conf").write_text("set -g remain-on-exit on\nset -g exit-empty off\n")
        self._tmux("start-server")

    def close(self) -> None:
        self._tmux("kill-server")

    def start(self, text: str) -> str:
        self._count += 1
        key = f"p{self._count}"
        self._tmux("new-session", "-d", "-s", key, "bash", "-c", text)
        return key

    def wait(self, key: str) -> int | None:
        until(lambda: True if self._shown(key)[:1] == ["1"] else None)
        return self.code(key)

    def count(self) -> int:
        return self._tmux("list-panes", "-a", "-F", "#{pane_dead}").split().count("0")

    def kill(self, key: str) -> None:
        self._tmux("kill-session", "-t", f"={key}")

    def manager(self) -> list[int]:
        return [int(self._tmux("display-message", "-p", "#{pid}"))]

    def revive(self) -> None:
        self._tmux("start-server")

    def code(self, key: str) -> int | None:
        shown = self._shown(key)
        return int(shown[1]) if len(shown) == 2 and shown[0] == "1" else None

    def _shown(self, key: str) -> list[str]:
        """Whether the pane is dead, and with which code: now and then tmux knows the former alone."""
        return self._tmux("list-panes", "-t", f"={key}", "-F", "#{pane_dead} #{pane_dead_status}").split()

    def _tmux(self, *words: str) -> str:
        return self.call(self._program, "-S", str(self.scratch / "socket"), "-f", str(self.scratch / "conf"), *words)
