"""The one shape of every answer: `status`, `reason`, `next`, `is_error`, then what the call was about. No I/O."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from holdfast.errors import HoldfastError
from holdfast.model.foreground_labels import is_foreground
from holdfast.model.shortening import CharacterBudget
from holdfast.model.units import duration_text

if TYPE_CHECKING:
    from holdfast.client.process import Process
    from holdfast.tools.arguments import ProcessCall

Answer: TypeAlias = dict[str, Any]

#: Statuses of calls that did not do what they were asked for.
ERRORS = frozenset({"error", "not_found", "denied", "approval_required"})
#: For an answer after which nothing needs to be done.
GO_ON = "go on"
_COMMAND = 100

_STATUS = {
    "not_found": "not_found",
    **dict.fromkeys(("denied", "command_denied", "not_approved", "no_approver"), "denied"),
    "approval_required": "approval_required",
}
#: What a model can do about an error, where the advice for the command line would not help it.
_NEXT = {
    "not_found": "process(action='list') shows your processes",
    "ambiguous": "give the whole session_id",
    "stdin_closed": "it was started without stdin; start it with background=true (or pty=true) to write to it",
    "stdin_full": "it does not read yet; wait until it has, then try again",
    "no_terminal": "it has no terminal; start it with pty=true, or use log",
    "limit_reached": "kill what is no longer needed: process(action='list')",
    "command_denied": "do it another way, or ask the user; do not try to get around it",
    "no_approver": "ask the user to run `holdfast approvals`, then call again",
    "approval_required": "ask the user for approval, then call again",
    "unreachable": "try again; if it stays so, tell the user to run `holdfast doctor`",
    "disk_full": "tell the user: the disk that holds holdfast's state is full",
    "not_now": "process(action='poll') shows its status",
}


class Limits(NamedTuple):
    """How long calls last and how much they show. Times are seconds."""

    window: float = 180.0
    """A foreground command that lasts longer goes on in the background."""
    longest_window: float = 600.0
    """The largest `timeout` of a foreground call."""
    wait: float = 180.0
    """The longest single wait, and the default."""
    call: float | None = None
    """Where the caller gives up: the longest that a foreground command is waited for, its start included."""
    budget: CharacterBudget = CharacterBudget(30_000, 10_000)
    """For the output of a foreground command, and of a log page of the default size."""
    large_budget: CharacterBudget = CharacterBudget(200_000, 60_000)
    """For a log page with a `limit`."""
    poll: int = 1000
    """Characters of output in the answer to a poll."""
    end: int = 2000
    """Characters of output in the answer to a wait."""
    page: int = 200
    """Lines of a log page."""
    notices: int = 5
    """Notices in one answer at most."""
    listed: int = 20
    """Processes in one list."""


class ToolRefusal(Exception):
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


def of_error(error: Exception) -> Answer:
    """The answer for a refused call, an error of holdfast, or a fault of the tools themselves."""
    if isinstance(error, ToolRefusal):
        return answer(error.status, error.reason, error.next, message=error.message)
    if not isinstance(error, HoldfastError):
        message = f"the tool failed: {type(error).__name__}"
        return answer("error", "internal", "try it another way, and tell the user", message=message)
    data = getattr(error, "data", None) or {}
    approval = (data.get("approval") or {}).get("id")
    next = _NEXT.get(error.code, error.next)
    if error.code == "no_approver" and approval is not None:
        next = f"ask the user to run `holdfast approve {approval}`, then call again"
    status = _STATUS.get(error.code, "error")
    return answer(status, error.code, next, message=error.message, rule=data.get("rule"), approval=approval)


def to_text(made: Answer) -> str:
    """As JSON that any reader takes: no NaN, no unpaired surrogates."""
    text = json.dumps(made, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode(errors="backslashreplace").decode()


def with_note(made: Answer, *notes: str) -> Answer:
    """The answer with these notes behind those that it has."""
    said = [*([made["note"]] if made.get("note") else []), *notes]
    return {**made, "note": "; ".join(said)} if said else made


def about(
    process: Process, next: str = GO_ON, *, status: str | None = None, reason: str | None = None, **more: object
) -> Answer:
    """The state of a process."""
    need = process.needs_input
    more = more if need is None else {**more, "needs_input": {key: need[key] for key in ("prompt", "secret")}}
    return answer(
        status or process.status,
        reason or process.reason or "running",
        next,
        session_id=process.id,
        pid=process.pid,
        exit_code=process.exit_code,
        signal=process.signal,
        uptime=uptime(process),
        **more,
    )


def brief_command(process: Process) -> str:
    command = " ".join(process.command.split())
    return command if len(command) <= _COMMAND else f"{command[:_COMMAND]}…"


def row(process: Process, preview: str | None) -> Answer:
    """A process in a list."""
    ended = process.ended_at
    fields = {
        "session_id": process.id,
        "name": process.name,
        "command": brief_command(process),
        "cwd": process.cwd,
        "pid": process.pid,
        "status": process.status,
        "reason": process.reason,
        "exit_code": process.exit_code,
        "started_at": _date(process.started_at),
        "ended_at": _date(ended),
        "ended_ago": None if ended is None else duration_text(time.time() - ended),
        "uptime": duration_text(uptime(process)),
        "preview": preview or None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _date(at: float | None) -> str | None:
    return None if at is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def uptime(process: Process) -> float:
    if process.started_at is None:
        return 0.0
    return max(0.0, round((process.ended_at or time.time()) - process.started_at, 1))


def asking(process: Process) -> str | None:
    """What to do about a process that waits for input; None where it does not."""
    if process.needs_input is None:
        return None
    attach = f"holdfast attach {process.id}"
    if process.needs_input["secret"]:
        return f"it waits for a secret: ask the user to run `{attach}` or `holdfast send {process.id} --secret`"
    return f"it waits for an answer: process(action='submit', data=…), or the user: `{attach}`"


def was_background(process: Process) -> bool:
    """Whether it is, or became, a background process: not one that ended within its foreground call."""
    return process.status != "ended" or not is_foreground(process.labels, uptime(process))


def bounded(call: ProcessCall, name: Literal["limit", "offset"], least: int, most: int, default: int) -> int:
    """This number of the call. A note of the call says where it is not what was asked for."""
    asked: int | None = getattr(call, name)
    if asked is None:
        return default
    granted = min(max(asked, least), most)
    if granted != asked:
        call.notes.append(f"{name} {asked} was clamped to {granted}")
    return granted


def clamped(asked: float | None, default: float, most: float, least: float, notes: list[str]) -> float:
    """The time to wait. A note says where it is not what was asked for."""
    if asked is None:
        return default
    granted = min(max(asked, least), most)
    if granted != asked:
        notes.append(f"timeout {asked:g} s was clamped to {granted:g} s")
    return granted
