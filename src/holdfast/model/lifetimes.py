"""Which processes end with what."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model.process import Process


def end_with_session(processes: Iterable[Process], session: str) -> tuple[list[Process], list[Process]]:
    """Of the session's running processes: those that end with it, and those that are left."""
    own = [process for process in processes if process.is_running and process.meta.session == session]
    return _split(own, "session")


def parent_of(processes: Iterable[Process], session: str) -> str | None:
    """The session that this one was started by, as its newest process that names one has it."""
    told = [
        (process.meta.requested_at, process.meta.parent_session)
        for process in processes
        if process.meta.session == session and process.meta.parent_session not in (None, session)
    ]
    return max(told, key=lambda one: one[0])[1] if told else None


def end_with_daemon(processes: Iterable[Process]) -> tuple[list[Process], list[Process]]:
    """Of all running processes: those that end when holdfast is stopped on purpose, and those that are left."""
    return _split([process for process in processes if process.is_running], "daemon")


def _split(processes: list[Process], lifetime: str) -> tuple[list[Process], list[Process]]:
    ending = [process for process in processes if process.meta.lifetime == lifetime]
    left = [process for process in processes if process.meta.lifetime != lifetime]
    return ending, left
