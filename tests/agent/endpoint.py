"""A scripted OpenAI-compatible endpoint: a real HTTP server that streams chat completions as server-sent events.

A script is a function of the request, or a list of steps; a step is what the model answers. Requests are checked as
endpoints check them: a conversation that is not valid is answered with 400, and noted.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Body = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call of a tool. `arguments` as an object, or as the raw text."""

    name: str
    arguments: Body | str = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Say:
    """An answer: text, and calls. `pause` is the time between two pieces of text."""

    text: str = ""
    calls: Sequence[Call] = ()
    pause: float = 0.0
    reasoning: str = ""
    usage: tuple[int, int] = (100, 10)


@dataclass(frozen=True)
class Fail:
    """A failure: a status, or with `cut` the end of the connection in the middle of the stream."""

    status: int = 500
    body: Body = field(default_factory=lambda: {"error": {"message": "failed by the script"}})
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


def call(name: str, /, **arguments: Any) -> Say:
    return Say(calls=[Call(name, arguments)])


Step = Say | Fail
Script = Callable[[Body], Step]


class Endpoint:
    """Serves while it is entered. Each session of an agent may have a script of its own: its model's name chooses."""

    def __init__(self, *steps: Step | Script) -> None:
        self._lock = threading.Lock()
        self._steps: dict[str, list[Step | Script]] = {"m": list(steps)}
        self._scripts: dict[str, Script] = {}
        #: All requests, in their order.
        self.asked: list[Body] = []
        self.keys: list[str] = []
        #: What endpoints would have refused.
        self.invalid: list[str] = []
        self._count = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        if kind is None:
            assert not self.invalid, self.invalid

    def script(self, *steps: Step | Script, model: str = "m") -> None:
        """These steps come next."""
        with self._lock:
            self._steps.setdefault(model, []).extend(steps)

    def always(self, script: Script, model: str = "m") -> None:
        """This answers all requests for which there is no step."""
        self._scripts[model] = script

    def asked_of(self, model: str) -> list[Body]:
        return [body for body in self.asked if body["model"] == model]

    def answer(self, body: Body, key: str) -> Step:
        with self._lock:
            self.asked.append(body)
            self.keys.append(key)
            if (fault := fault_of(body["messages"])) is not None:
                self.invalid.append(fault)
                return Fail(400, {"error": {"message": fault}})
            steps = self._steps.get(body["model"]) or []
            chosen = steps.pop(0) if steps else self._scripts.get(body["model"], lambda _: Say("nothing left to do"))
        return chosen(body) if callable(chosen) else chosen

    def next_id(self) -> str:
        with self._lock:
            self._count += 1
            return f"call_{self._count:06d}"


def fault_of(messages: list[Body]) -> str | None:
    """Why an endpoint would refuse a conversation; None for a valid one."""
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                return f"message {at} answers no call"
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return f"message {at} ({role}) stands between a call and its answer"
        if role == "system" and at:
            return f"message {at} is a late system message"
        if role != "assistant" and not isinstance(content, str):
            return f"message {at} has no content"
        if role == "assistant":
            calls = message.get("tool_calls") or []
            if not content and not calls:
                return f"message {at} is empty"
            for one in calls:
                if not isinstance(json.loads(one["function"]["arguments"]), dict):
                    return f"message {at} has arguments that are no object"
            waiting = [one["id"] for one in calls]
    return "a call has no answer" if waiting else None


def texts_of(body: Body) -> list[str]:
    """The contents of the messages that the model was shown, without the system prompt."""
    return [str(message.get("content")) for message in body["messages"] if message["role"] != "system"]


def last_result(body: Body) -> Body:
    """The last answer of a tool, as an object."""
    text = next(one["content"] for one in reversed(body["messages"]) if one["role"] == "tool")
    found: Body = json.loads(text)
    return found


def _handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            return

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            step = endpoint.answer(body, self.headers.get("authorization", ""))
            try:
                self._send(step, body)
            except OSError:
                self.close_connection = True  # the client has gone

        def _send(self, step: Step, body: Body) -> None:
            if isinstance(step, Fail) and not step.cut:
                data = json.dumps(step.body).encode()
                self.send_response(step.status)
                for name, value in {"content-type": "application/json", **step.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.close_connection = True
            if isinstance(step, Fail):
                self._chunk({"content": "half of an ans"})
                self.wfile.write(b'data: {"id": "x", "cho')
                return
            self._stream(step)

        def _stream(self, step: Say) -> None:
            if step.reasoning:
                self._chunk({"reasoning_content": step.reasoning})
            size = max(1, len(step.text) // 5)
            for at in range(0, len(step.text), size):
                self._chunk({"content": step.text[at : at + size]})
                if step.pause:
                    time.sleep(step.pause)
            for index, one in enumerate(step.calls):
                head = {"index": index, "id": endpoint.next_id(), "type": "function"}
                self._chunk({"tool_calls": [{**head, "function": {"name": one.name, "arguments": ""}}]})
                for at in range(0, len(one.text), 50):
                    piece = {"index": index, "function": {"arguments": one.text[at : at + 50]}}
                    self._chunk({"tool_calls": [piece]})
            self._chunk({}, finish="tool_calls" if step.calls else "stop")
            used = {"prompt_tokens": step.usage[0], "completion_tokens": step.usage[1], "total_tokens": sum(step.usage)}
            self._data({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
                        "usage": {**used, "prompt_tokens_details": {"cached_tokens": 40}}})  # fmt: skip
            self.wfile.write(b"data: [DONE]\n\n")

        def _chunk(self, delta: Body, finish: str | None = None) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            self._data({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})

        def _data(self, value: Body) -> None:
            self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
            self.wfile.flush()

    return Handler
