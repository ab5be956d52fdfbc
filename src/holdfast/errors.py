"""The errors, sorted by what the caller can do about them. Each has a wire code; `next` names the next step."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class HoldfastError(Exception):
    """Something holdfast could not do. `code` is stable; `next` says what to try."""

    code = "failed"
    next = "holdfast doctor"
    #: What the command line ends with.
    exit_status = 125

    def __init__(self, message: str, *, next: str | None = None, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        #: Details for programs.
        self.data = data
        if next is not None:
            self.next = next

    def to_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = {"code": self.code, "message": self.message, "next": self.next}
        return wire if self.data is None else {**wire, "data": self.data}


class NotFound(HoldfastError):
    """No process, session or notification goes by that name."""

    code = "not_found"
    next = "holdfast ps -a"


class Ambiguous(HoldfastError):
    """The ids or names of more than one process begin so."""

    code = "ambiguous"
    next = "give more characters of the id or name: holdfast ps -a"


class BadValue(HoldfastError):
    """An invalid argument."""

    code = "bad_value"
    next = "see docs/reference.md for the values that are accepted"


class NotNow(HoldfastError):
    """The request is fine, the state of the process is not."""

    code = "not_now"
    next = "holdfast inspect ID"


class StdinClosed(NotNow):
    """The process takes no input: it was started without, or its input was closed."""

    code = "stdin_closed"
    next = "start it again with --stdin (or -t for a terminal)"


class StdinFull(NotNow):
    """The process does not read what was written before."""

    code = "stdin_full"
    next = "try again when it has read some of it: holdfast logs ID"


class NoTerminal(NotNow):
    """The request needs a PTY and the process has none."""

    code = "no_terminal"
    next = "start it again with -t"


class AlreadyRunning(NotNow):
    """The same session already runs this command here, and asked not to run it twice."""

    code = "already_running"
    next = "holdfast ps"


class LimitReached(HoldfastError):
    """As many processes run as are allowed."""

    code = "limit_reached"
    next = "holdfast kill ID, or raise max_processes in the configuration"


class StartFailed(HoldfastError):
    """The command could not be started, and nothing was registered."""

    code = "failed_start"
    next = "check the command and the directory"


class NotExecutable(StartFailed):
    code = "not_executable"
    next = "chmod +x the file, or run it through its interpreter"
    exit_status = 126


class CommandNotFound(StartFailed):
    code = "command_not_found"
    next = "check the spelling and PATH"
    exit_status = 127


class DiskFull(HoldfastError):
    """The disk that holds the instance's state cannot be written: it is full or read-only."""

    code = "disk_full"
    next = "free some space or make it writable, or set HOLDFAST_HOME to another disk"


class Unreachable(HoldfastError):
    """The daemon or the keeper does not answer."""

    code = "unreachable"
    next = "holdfast daemon status"


class Unsupported(HoldfastError):
    """This machine, backend or release cannot do that."""

    code = "unsupported"


class Denied(HoldfastError):
    """The peer is not the owner of this instance."""

    code = "denied"
    next = "run it as the user that owns HOLDFAST_HOME"


class NotApproved(HoldfastError):
    """The command needs an approval and has none. It was not run."""

    code = "not_approved"
    next = "holdfast approvals"


class ApprovalRequired(NotApproved):
    """The caller asks an approver itself: the request is in `data`."""

    code = "approval_required"
    next = "ask the user; then approve or deny it, and start again"


class NoApprover(NotApproved):
    """No approver is connected. `data` has the request, which can still be answered."""

    code = "no_approver"


class CommandDenied(NotApproved):
    """Denied by a rule, by an approver or because of a timeout; `reason` in `data` says which."""

    code = "command_denied"
    next = "do without it, or ask the user"


class NoPassword(HoldfastError):
    """sudo gets no password; `reason` in `data` says why."""

    code = "no_password"
    next = "call sudo again while holdfast approvals --follow runs in a terminal of the user"


_BY_CODE: dict[str, type[HoldfastError]] = {
    kind.code: kind
    for kind in (
        HoldfastError,
        NotFound,
        Ambiguous,
        BadValue,
        NotNow,
        StdinClosed,
        StdinFull,
        NoTerminal,
        AlreadyRunning,
        LimitReached,
        StartFailed,
        NotExecutable,
        CommandNotFound,
        DiskFull,
        Unreachable,
        Unsupported,
        Denied,
        NotApproved,
        ApprovalRequired,
        NoApprover,
        CommandDenied,
        NoPassword,
    )
}


def from_wire(error: dict[str, Any]) -> HoldfastError:
    """The error that the other side raised; an unknown code of a newer release stays a HoldfastError."""
    kind = _BY_CODE.get(error.get("code", ""), HoldfastError)
    data = error.get("data")
    return kind(
        error.get("message", "unknown error"),
        next=error.get("next"),
        **({"data": data} if isinstance(data, dict) else {}),
    )


#: Codes of the keeper that have another name here.
_KEEPER_CODES = {
    "no_pty": "failed_start",
    "exists": "not_now",
    "ended": "not_now",
    "no_sandbox": "unsupported",
    "file_limit": "limit_reached",
}
_KEEPER_NEXT = {
    "no_sandbox": "see docs/sandbox.md for what a sandbox needs",
    "file_limit": "holdfast kill ID, or raise the limit: prlimit --pid PID --nofile=NUMBER",
}


def from_keeper(code: str, message: str) -> HoldfastError:
    """The error for a refusal of the keeper."""
    return from_wire({"code": _KEEPER_CODES.get(code, code), "message": message, "next": _KEEPER_NEXT.get(code)})
