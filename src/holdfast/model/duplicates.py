"""The same command twice: what happens when a session starts again what it already runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from holdfast.errors import AlreadyRunning
from holdfast.model.process import Meta, Process

IfRunning: TypeAlias = Literal["allow", "reuse", "replace", "error"]
CHOICES: tuple[IfRunning, ...] = ("allow", "reuse", "replace", "error")


def twins(wanted: Meta, processes: Iterable[Process]) -> list[Process]:
    """Living processes of the same session with the same command in the same directory, oldest first."""
    found = [process for process in processes if process.takes_room and _same(process.meta, wanted)]
    return sorted(found, key=lambda process: process.meta.requested_at)


def refuse(found: list[Process]) -> None:
    """Raises AlreadyRunning, naming them."""
    ids = ", ".join(process.id for process in found)
    raise AlreadyRunning(f"this session already runs this command in this directory: {ids}")


def note(found: list[Process]) -> str:
    ids = ", ".join(process.id for process in found)
    return f"the same command already runs in this directory: {ids}"


def _same(one: Meta, other: Meta) -> bool:
    return (one.session, one.argv, one.cwd, one.id != other.id) == (other.session, other.argv, other.cwd, True)
