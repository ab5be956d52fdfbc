"""This holdfast, asked by the Python client and by the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.compare.peer import Peer
from holdfast.client.sync import Client


class InPython(Peer):
    name = "holdfast (Python)"
    asked_by = "python"

    def __init__(self, scratch: Path) -> None:
        super().__init__(scratch)
        self.home = str(scratch / "home")
        self.env["HOLDFAST_HOME"] = self.home

    def open(self) -> None:
        self.client = Client("bench", home=self.home)

    def close(self) -> None:
        self.client.kill(all=True, grace=0)
        self.client.stop_daemon()
        self.client.close()

    def start(self, text: str) -> str:
        return self.client.run(text, env={"HOLDFAST_BENCH_MARK": str(self.scratch)}).id

    def wait(self, key: str) -> int | None:
        return self.client.wait(key, timeout=60).exit_code

    def count(self) -> int:
        return len(self.client.ps())

    def kill(self, key: str) -> None:
        self.client.kill(key, grace=2)

    def manager(self) -> list[int]:
        """All three processes of holdfast."""
        status = self.client.status()
        return [status["pid"], status["keeper_pid"], status["anchor_pid"]]

    def revive(self) -> None:
        """Any call starts it again; without one, no process would see the end."""
        self.client.status()

    def code(self, key: str) -> int | None:
        return self.client.wait(key, timeout=10).exit_code


class OnCommandLine(InPython):
    name = "holdfast (command line)"
    asked_by = "cli"

    def start(self, text: str) -> str:
        return self._call("run", "-d", "-c", text).strip()

    def wait(self, key: str) -> int | None:
        code: int | None = json.loads(self._call("wait", "--json", key))["exit_code"]
        return code

    def count(self) -> int:
        return self._call("ps").count("\n") - 1

    def kill(self, key: str) -> None:
        self._call("kill", "--grace", "2", key)

    def code(self, key: str) -> int | None:
        return self.wait(key)

    def _call(self, *words: str) -> str:
        return self.call(sys.executable, "-m", "holdfast", *words)
