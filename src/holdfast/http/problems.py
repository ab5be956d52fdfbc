"""Errors as HTTP tells them: a status, and application/problem+json with the codes of `errors`."""

from __future__ import annotations

from holdfast.errors import HoldfastError, Unsupported
from holdfast.wire import light_json

MEDIA = "application/problem+json"

#: What a code means as a status. What is not here is a fault of ours.
STATUS = {
    "bad_value": 400,
    "denied": 403,
    "command_denied": 403,
    "no_approver": 403,
    "approval_required": 403,
    "not_approved": 403,
    "no_password": 403,
    "not_found": 404,
    "ambiguous": 409,
    "not_now": 409,
    "stdin_closed": 409,
    "stdin_full": 409,
    "no_terminal": 409,
    "already_running": 409,
    "limit_reached": 409,
    "failed_start": 422,
    "not_executable": 422,
    "command_not_found": 422,
    "unsupported": 422,
    "unreachable": 503,
    "disk_full": 507,
}

TITLES = {
    "ambiguous": "Ambiguous",
    "already_running": "Already running",
    "approval_required": "Approval required",
    "bad_value": "Bad value",
    "command_denied": "Command denied",
    "command_not_found": "Command not found",
    "denied": "Denied",
    "disk_full": "Disk full",
    "failed": "Failed",
    "failed_start": "Start failed",
    "limit_reached": "Limit reached",
    "no_approver": "No approver",
    "no_terminal": "No terminal",
    "not_executable": "Not executable",
    "not_found": "Not found",
    "not_now": "Not now",
    "stdin_closed": "Input closed",
    "stdin_full": "Input full",
    "unreachable": "Unreachable",
    "unsupported": "Unsupported",
}


class Refusal(HoldfastError):
    """A request that is refused for what it is as HTTP, with the status that says so."""

    def __init__(
        self, status: int, code: str, message: str, *, next: str, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(message, next=next)
        self.status = status
        self.code = code
        self.headers = headers


class Gone(Unsupported):
    """Whoever asked is not there any more: nobody needs an answer."""


def status_of(error: HoldfastError) -> int:
    return error.status if isinstance(error, Refusal) else STATUS.get(error.code, 500)


def problem(error: HoldfastError) -> dict[str, object]:
    more = {} if error.data is None else {"data": error.data}
    return {
        "type": "about:blank",
        "title": TITLES.get(error.code, error.code.replace("_", " ").capitalize()),
        "status": status_of(error),
        "code": error.code,
        "detail": error.message,
        "next": error.next,
        **more,
    }


def problem_bytes(error: HoldfastError) -> bytes:
    return light_json.dumps(problem(error)).encode()
