"""An instance of holdfast with a provider, whose service is a server of the tests: the real command and daemon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class Instance:
    def __init__(self, directory: Path, kind: str, server: Any) -> None:
        self.home = directory / "home"
        self.home.mkdir(mode=0o700)
        self.kind, self.server = kind, server
        self.configure(**server.options)

    def configure(self, **options: Any) -> None:
        variables = options.pop("env", {})
        lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
        lines += [
            f"[backends.{self.kind}.env]",
            *(f"{name} = {json.dumps(value)}" for name, value in variables.items()),
        ]
        (self.home / "config.toml").write_text("\n".join([f"[backends.{self.kind}]", *lines, ""]), encoding="utf-8")

    def __call__(self, *arguments: str, code: int | None = 0, given: str | None = None) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "HOLDFAST_HOME": str(self.home), **self.server.environ},
            timeout=60,
            cwd="/usr",
            **({"stdin": subprocess.DEVNULL} if given is None else {"input": given}),
        )
        assert code is None or done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))

    def start(self, *arguments: str) -> str:
        return self("run", "-d", "--backend", self.kind, *arguments).splitlines()[0]

    def status(self, process: str) -> str:
        return str(self.json("inspect", process)["status"])

    def has_ended(self, process: str) -> bool:
        return self.status(process) == "ended"

    def shown(self) -> dict[str, Any]:
        return dict(next(one for one in self.json("backends") if one["name"] == self.kind))

    def sandbox(self) -> Any:
        (found,) = self.server.sandboxes.values()
        return found

    def notice(self) -> dict[str, Any]:
        (found,) = self.json("inbox", "--wait", "10")
        return dict(found)
