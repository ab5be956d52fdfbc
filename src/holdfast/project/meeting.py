"""Needs on their way to being met: each is waited for once, for all who have it."""

from __future__ import annotations

import threading

from holdfast.client.process import Process
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError
from holdfast.project import roll
from holdfast.project.happening import Happening, Told
from holdfast.project.spec import Member, Need
from holdfast.project.waiting import Watch, until

#: A wait is told of again after so many seconds.
_AGAIN_AFTER = 10.0


class Meetings:
    """For many threads at once."""

    def __init__(self, client: Client, cancelled: threading.Event, told: Told) -> None:
        self._client = client
        self._cancelled = cancelled
        self._told = told
        self._all: dict[tuple[str, Need], _Meeting] = {}

    def meet(self, member: Member, process: Process, need: Need, waiter: Member | None, is_old: bool) -> None:
        """Wait until the need of this member is met. Raises what keeps it from being met, the same for all who wait.

        `waiter` is who needs it; None for the member itself. `is_old` says that the process was there before us.
        """
        meeting = self._all.setdefault((member.name, need), _Meeting())
        with meeting.lock:
            if not meeting.is_over:
                meeting.error = self._try(member, process, need, waiter, is_old)
                meeting.is_over = True
        if meeting.error is not None:
            raise meeting.error

    def _try(
        self, member: Member, process: Process, need: Need, waiter: Member | None, is_old: bool
    ) -> HoldfastError | None:
        if is_old and _is_past(member, process, need):
            return None
        try:
            process = until(self._client, member, process, need, self._watch(member, need, waiter))
        except HoldfastError as error:
            return error
        if need.kind != "log":
            self._told.put(Happening("ready" if need.kind == "ready" else "completed", member.name, "", process))
        return None

    def _watch(self, member: Member, need: Need, waiter: Member | None) -> Watch:
        next_at = 0.0

        def still_waits(so_far: float) -> None:
            nonlocal next_at
            if so_far >= next_at:
                next_at = so_far + _AGAIN_AFTER
                who, whom = (waiter.name, member.name) if waiter is not None else (member.name, "it")
                self._told.put(Happening("waiting", who, f"waits until {whom} {need}", seconds=so_far))

        return Watch(self._cancelled, still_waits)


class _Meeting:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_over = False
        self.error: HoldfastError | None = None


def _is_past(member: Member, process: Process, need: Need) -> bool:
    """What was so before we came. Of one that wrote much, the line may be among what is no longer kept."""
    if need.kind == "completed":
        return roll.has_succeeded(process, member)
    if need.kind == "ready":
        return process.ready is True
    return process.dropped_bytes > 0
