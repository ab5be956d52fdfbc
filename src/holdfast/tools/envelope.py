"""The one shape of every answer: `status`, `reason`, `next`, `is_error`, then what the call was about. No I/O."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from holdfast.errors import HoldfastError

Answer: TypeAlias = dict[str, Any]

#: Statuses of calls that did not do what they were asked for.
ERRORS = frozenset({"error", "not_found", "denied", "approval_required"})
#: For an answer after which nothing needs to be done.
GO_ON = "go on"

_STATUS = {
    "not_found": "not_found",
    "denied": "denied",
    "command_denied": "denied",
    "not_approved": "denied",
    "approval_required": "approval_required",
    "no_approver": "denied",
}
#: What a model can do about it, where the command line's advice would not help it.
_NEXT = {
    "not_found": "process(action='list') shows your processes",
    "ambiguous": "give the whole session_id",
    "stdin_closed": "it takes no input; start it with background=true (or pty=true) to write to it",
    "stdin_full": "it does not read yet; wait until it has, then try again",
    "no_terminal": "it has no terminal; start it with pty=true, or use log",
    "limit_reached": "kill what is no longer needed: process(action='list')",
    "command_denied": "do it another way, or ask the user; do not try to get around it",
    "no_approver": "ask the user to run `holdfast approvals`, then call again",
    "approval_required": "ask the user for approval, then call again",
    "unreachable": "try again; if it stays so, tell the user to run `holdfast doctor`",
    "disk_full": "tell the user: the disk that holds holdfast's state is full",
    "not_now": "process(action='poll') tells how it stands",
}


class Refusal(Exception):
    """A call that cannot be done as it was asked. Becomes an answer."""

    def __init__(self, reason: str, message: str, next: str, status: str = "error") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.next = next


def answer(status: str, reason: str, next: str = GO_ON, **more: object) -> Answer:
    """An answer. What is None is left out."""
    head: Answer = {"status": status, "reason": reason, "next": next, "is_error": status in ERRORS}
    return {**head, **{key: value for key, value in more.items() if value is not None}}


def refused(refusal: Refusal) -> Answer:
    return answer(refusal.status, refusal.reason, refusal.next, message=refusal.message)


def failed(error: HoldfastError) -> Answer:
    """What holdfast could not do."""
    data = getattr(error, "data", None) or {}
    approval = (data.get("approval") or {}).get("id")
    next = _NEXT.get(error.code, error.next)
    if error.code == "no_approver" and approval is not None:
        next = f"ask the user to run `holdfast approve {approval}`, then call again"
    return answer(
        _STATUS.get(error.code, "error"),
        error.code,
        next,
        message=error.message,
        rule=data.get("rule"),
        approval=approval,
    )


def broken(what: BaseException) -> Answer:
    """A fault of the tools themselves."""
    message = f"the tool failed: {type(what).__name__}"
    return answer("error", "internal", "try it another way, and tell the user", message=message)


def to_text(made: Answer) -> str:
    """As JSON that any reader takes: no NaN, no halves of characters."""
    text = json.dumps(made, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode(errors="backslashreplace").decode()
