"""A model: calls the tools and reads the answers, each of which has the one shape."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self

from holdfast.tools import Limits, Tools

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
