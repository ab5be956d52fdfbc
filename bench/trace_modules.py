"""Which modules of holdfast run before a request leaves the client: `python -m bench.trace_modules`.

Traced are an MCP `process` poll, as the first call of a server and on a connection that is open, and `holdfast run -d`
on the command line. A module counts where one of its functions is called; importing it does not. Tracing begins where
the MCP SDK hands over the tools/call (or with the command line's main function) and ends when the frame of the
operation is written to the socket. Other tasks that run meanwhile, such as the reader of stdin, are counted, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from types import FrameType
from typing import Any

_SESSION = "trace"
_INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "trace", "version": "1"}}


class Trace:
    """Collects modules from the first call into `first` until the frame of `operation` is sent."""

    def __init__(self, first: str, operation: str, skipped: int) -> None:
        self._first = first
        self._operation = operation
        self._skipped = skipped
        self._is_on = False
        self._is_encoded = False
        self._modules: dict[str, None] = {}
        self._seen: dict[FrameType, None] = {}

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            self._called(str(frame.f_globals.get("__name__", "")), frame)
        elif event == "c_call" and self._is_encoded and arg.__name__ in ("send", "sendall", "sendmsg"):
            self._sent()

    def _called(self, module: str, frame: FrameType) -> None:
        if not module.startswith("holdfast") or frame.f_code.co_name == "<module>":
            return
        if module.startswith(self._first) and frame not in self._seen:  # a coroutine that goes on is called again
            self._seen[frame] = None
            method = getattr(frame.f_locals.get("ctx"), "method", None)  # of a request, as the SDK hands it over
            self._is_on = self._is_on or method == "tools/call" or self._first == "holdfast.cli"
        if self._is_on:
            self._modules[module] = None
        if module == "holdfast.wire.frames" and frame.f_code.co_name == "encode":
            message = frame.f_locals.get("message")
            self._is_encoded = isinstance(message, dict) and message.get("op") == self._operation

    def _sent(self) -> None:
        self._is_encoded = False
        if self._skipped:
            self._skipped -= 1
            self._is_on, self._modules = False, {}
            return
        sys.setprofile(None)
        with open(os.environ["TRACE_FILE"], "w", encoding="utf-8") as file:
            file.write("\n".join(self._modules))


def _child(first: str, operation: str, skipped: str, *argv: str) -> None:
    from holdfast.cli.entry import main

    sys.argv = ["holdfast", *argv]
    sys.setprofile(Trace(first, operation, int(skipped)))
    main()


def _traced(*words: str) -> list[str]:
    return [sys.executable, "-m", "bench.trace_modules", *words]


def _poll(process: str, skipped: int, env: dict[str, str]) -> None:
    argv = _traced("holdfast.mcp.server", "inspect", str(skipped), "mcp", "--session", _SESSION)
    with subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        _ask(server, "initialize", _INITIALIZE)
        _say(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        poll = {"action": "poll", "session_id": process}
        for _ in range(skipped + 1):
            _ask(server, "tools/call", {"name": "process", "arguments": poll})
        assert server.stdin is not None
        server.stdin.close()


def _ask(server: subprocess.Popen[str], method: str, params: dict[str, Any]) -> dict[str, Any]:
    assert server.stdout is not None
    _say(server, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    while line := server.stdout.readline():
        message = json.loads(line)
        if message.get("id") == 1:
            return dict(message["result"])
    raise EOFError("the server ended")


def _say(server: subprocess.Popen[str], message: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(f"{json.dumps(message)}\n")
    server.stdin.flush()


def _run(*argv: str, env: dict[str, str]) -> str:
    return subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def main() -> None:
    holdfast = (sys.executable, "-m", "holdfast")
    with tempfile.TemporaryDirectory(prefix="hf-trace-") as home:
        env = {**os.environ, "HOLDFAST_HOME": home, "TRACE_FILE": f"{home}/modules"}
        start = ("run", "-d", "--session", _SESSION, "--", "sleep", "60")
        try:
            process = _run(*holdfast, *start, env=env)
            traces: dict[str, Callable[[], object]] = {
                "MCP poll, the first call of a server": lambda: _poll(process, 0, env),
                "MCP poll, connection open": lambda: _poll(process, 2, env),
                "holdfast run -d": lambda: _run(*_traced("holdfast.cli", "start", "0", *start), env=env),
            }
            for name, trace in traces.items():
                trace()
                with open(env["TRACE_FILE"], encoding="utf-8") as file:
                    modules = file.read().split()
                print(f"{name}: {len(modules)} modules", *modules, sep="\n  ")
        finally:
            _run(*holdfast, "kill", "--all", env=env)
            _run(*holdfast, "daemon", "stop", env=env)


if __name__ == "__main__":
    _child(*sys.argv[1:]) if len(sys.argv) > 1 else main()
