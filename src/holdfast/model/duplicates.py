"""The same command twice: what happens when a session starts again what it already runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NoReturn, TypeAlias

from holdfast.errors import AlreadyRunning
from holdfast.model.process import Meta, Process

IfRunning: TypeAlias = Literal["allow", "reuse", "replace", "error"]
CHOICES: tuple[IfRunning, ...] = ("allow", "reuse", "replace", "error")

_NAMED_AT_MOST = 5


def likeness(meta: Meta) -> tuple[object, ...]:
    """What makes two starts the same: session, command and directory."""
    return (meta.session, meta.argv, meta.cwd)


def refuse(twins: Sequence[Process]) -> NoReturn:
    """Raises AlreadyRunning, naming them."""
    raise AlreadyRunning(f"this session already runs this command in this directory: {_named(twins)}")


def note(twins: Sequence[Process]) -> str:
    return f"the same command already runs in this directory: {_named(twins)}"


def _named(processes: Sequence[Process]) -> str:
    named = ", ".join(process.id for process in processes[:_NAMED_AT_MOST])
    more = len(processes) - _NAMED_AT_MOST
    return f"{named} and {more} more" if more > 0 else named
