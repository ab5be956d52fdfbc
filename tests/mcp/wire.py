"""The server's own stdin and stdout, for what no well-behaved client sends."""

from __future__ import annotations

import json
import subprocess
from types import TracebackType
from typing import Any, Self

from tests.mcp.host import command


class Wire:
    """A server that was started, and what it said."""

    def __init__(self, *arguments: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command(*arguments), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self._numbers = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next line; whatever is on stdout is the protocol."""
        assert self.process.stdout is not None
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        return message

    def notify(self, method: str, **params: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer; what is told meanwhile is passed over."""
        self._numbers += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._numbers, "method": method, "params": params}))
        while (message := self.read()).get("id") != self._numbers:
            pass
        return message

    def greet(self, version: str, **capabilities: Any) -> dict[str, Any]:
        client = {"name": "test", "version": "1"}
        answer = self.ask("initialize", protocolVersion=version, capabilities=capabilities, clientInfo=client)
        self.notify("notifications/initialized")
        result: dict[str, Any] = answer["result"]
        return result
