"""A model: calls the tools and reads the answers, each of which has the one shape."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self

import pytest

from holdfast.client.aio_link import AsyncLink
from holdfast.errors import Unsupported
from holdfast.tools import Limits, Tools
from holdfast.wire.frames import Message

STATUSES = {
    *("ok", "running", "ended", "unchanged", "already_exited", "interrupted"),
    *("error", "not_found", "denied", "approval_required"),
}


def checked(text: object) -> dict[str, Any]:
    """The answer, once it has been seen to have the shape."""
    assert isinstance(text, str)
    answer = json.loads(text)
    assert isinstance(answer, dict)
    assert list(answer)[:4] == ["status", "reason", "next", "is_error"]
    assert answer["status"] in STATUSES
    assert isinstance(answer["reason"], str) and answer["reason"]
    assert isinstance(answer["next"], str) and answer["next"]
    assert answer["is_error"] is (answer["status"] in {"error", "not_found", "denied", "approval_required"})
    assert answer["reason"] != "internal", answer
    return answer


class Sent:
    """The operations that clients ask for, in their order. Those in `unknown` are refused as by an older daemon."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, unknown: str | None = None) -> None:
        self.operations: list[str] = []
        ask = AsyncLink.ask

        def record(connection: AsyncLink, op: str, arguments: Message, listener: Any) -> int:
            self.operations.append(op)
            if op == unknown:
                raise Unsupported(f"unknown operation {op!r}")
            return ask(connection, op, arguments, listener)

        monkeypatch.setattr(AsyncLink, "ask", record)

    def of_calls(self) -> list[str]:
        """Without greetings, events of tool calls, and the one request that listens for interrupts."""
        return [op for op in self.operations if op not in ("hello", "publish", "events")]


class Model:
    def __init__(self, session: str, cwd: str, limits: Limits | None = None, push: bool = False) -> None:
        self.tools = Tools(session, cwd=cwd, limits=limits, push=push)
        self.session = session

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.tools.close()

    def terminal(self, *values: object, **arguments: object) -> dict[str, Any]:
        return checked(self.tools.terminal(*values, **arguments))

    def process(self, *values: object, **arguments: object) -> dict[str, Any]:
        return checked(self.tools.process(*values, **arguments))

    def background(self, command: str, **arguments: object) -> str:
        """The id of a process in the background."""
        answer = self.terminal(command, background=True, **arguments)
        assert answer["status"] == "running", answer
        return str(answer["session_id"])
