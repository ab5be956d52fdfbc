"""pm2, by its command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.compare.install import node_package
from bench.compare.peer import Peer, until


def get(cache: Path) -> Callable[[Path], Peer]:
    program, bin_of_node = node_package(cache, "pm2", "pm2")
    return partial(Pm2, program, bin_of_node)


class Pm2(Peer):
    name = "pm2"

    def __init__(self, program: Path, bin_of_node: Path, scratch: Path) -> None:
        super().__init__(scratch)
        self._program = str(program)
        self._count = 0
        self.env |= {"PM2_HOME": str(scratch), "PATH": f"{bin_of_node}:{self.env.get('PATH', '')}"}

    def open(self) -> None:
        self._pm2("ping")

    def close(self) -> None:
        self._pm2("kill")

    def start(self, text: str) -> str:
        self._count += 1
        key = f"p{self._count}"
        script = self.scratch / f"{key}.sh"
        script.write_text(f"{text}\n")
        self._pm2("start", str(script), "--name", key, "--interpreter", "bash", "--no-autorestart")
        return key

    def wait(self, key: str) -> int | None:
        return until(lambda: self.code(key))

    def count(self) -> int:
        return sum(app["pm2_env"]["status"] == "online" for app in self._list())

    def kill(self, key: str) -> None:
        self._pm2("delete", key)

    def manager(self) -> list[int]:
        return [int((self.scratch / "pm2.pid").read_text())]

    def revive(self) -> None:
        self._pm2("ping")

    def code(self, key: str) -> int | None:
        for app in self._list():
            if app["name"] == key and app["pm2_env"]["status"] in ("stopped", "errored"):
                code: int | None = app["pm2_env"].get("exit_code")
                return code
        return None

    def _list(self) -> list[dict[str, Any]]:
        shown = self._pm2("jlist")
        found: list[dict[str, Any]] = json.loads(shown[shown.find("[") :] or "[]")
        return found

    def _pm2(self, *words: str) -> str:
        return self.call(self._program, *words)
