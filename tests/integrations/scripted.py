"""A scripted model behind a local HTTP server: says and calls what a test wrote down, and keeps what it was asked.

It speaks Anthropic's messages, OpenAI's responses and OpenAI's chat completions; which one, the path tells.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.integrations import dialects

Body = dict[str, Any]


@dataclass(frozen=True)
class Say:
    """The model ends its turn with a text."""

    text: str


@dataclass(frozen=True)
class Call:
    """The model calls a tool, whose name ends in `tool` (clients put their own words in front)."""

    tool: str
    arguments: Body = field(default_factory=dict)


Step = Say | Call | Callable[[Body], Say | Call]


def seen(body: Body) -> str:
    """What the model is shown in a request, without the tools that it is offered."""
    return json.dumps(body.get("messages") or body.get("input"))


class ScriptedModel:
    """Takes one step per request that offers the tool `offers`; whatever else is asked is no part of the script."""

    def __init__(self, steps: Sequence[Step] = (), offers: str = "terminal") -> None:
        self._steps = list(steps)
        self._offers = offers
        self._lock = threading.Lock()
        #: The requests that were answered by a step.
        self.asked: list[Body] = []
        #: What went wrong in a step.
        self.errors: list[BaseException] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        if kind is None and self.errors:
            raise self.errors[0]

    def script(self, *steps: Step) -> None:
        """These steps come next."""
        with self._lock:
            self._steps += steps

    def answer(self, body: Body) -> tuple[Say | Call, str]:
        """What the model does now, and the full name of the tool where it calls one."""
        names = dialects.tool_names(body)
        if not any(name.endswith(self._offers) for name in names):
            # A slow machine: our server is not there yet. Other tools keep the turn going until it is.
            return (Call("Bash", {"command": "sleep 1"}), "Bash") if "Bash" in names else (Say("ok"), "")
        with self._lock:
            self.asked.append(body)
            step = self._steps.pop(0) if self._steps else Say("done")
        try:
            act = step if isinstance(step, (Say, Call)) else step(body)
        except BaseException as error:  # noqa: BLE001 - it is the test's, and told where the test sees it
            self.errors.append(error)
            act = Say(f"the script failed: {error!r}")
        tool = act.tool if isinstance(act, Call) else ""
        return act, next((name for name in names if tool and name.endswith(tool)), tool)


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            reply = dialects.reply(self.path.partition("?")[0], body, model.answer)
            self._send(*reply)

        def do_GET(self) -> None:
            self._send(200, "application/json", b'{"data":[],"models":[],"object":"list"}')

        do_HEAD = do_GET

        def _send(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
