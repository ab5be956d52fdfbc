"""The keeper's no, in the words of holdfast's errors."""

from __future__ import annotations

from holdfast.errors import (
    BadValue,
    CommandNotFound,
    DiskFull,
    HoldfastError,
    NoTerminal,
    NotExecutable,
    NotFound,
    NotNow,
    StartFailed,
    StdinClosed,
    StdinFull,
    Unsupported,
)
from holdfast.places.keeper_link import Refused

_KINDS: dict[str, type[HoldfastError]] = {
    "failed_start": StartFailed,
    "not_executable": NotExecutable,
    "command_not_found": CommandNotFound,
    "no_pty": StartFailed,
    "disk_full": DiskFull,
    "exists": NotNow,
    "not_found": NotFound,
    "ended": NotNow,
    "not_now": NotNow,
    "stdin_closed": StdinClosed,
    "stdin_full": StdinFull,
    "no_terminal": NoTerminal,
    "bad_value": BadValue,
    "unsupported": Unsupported,
}


def to_error(refused: Refused) -> HoldfastError:
    return _KINDS.get(refused.code, HoldfastError)(refused.message)
