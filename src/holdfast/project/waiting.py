"""Waiting until a member is ready, has completed, or has written a line: once for all members that depend on it."""

from __future__ import annotations

import threading
import time

from holdfast.client.process import Process, outcome
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError
from holdfast.project import state
from holdfast.project.events import EventQueue, ProjectEvent
from holdfast.project.spec import Member, Need

#: How long a single request waits. A cancelled wait returns that late.
_SLICE = 1.0
#: Seconds between two `waiting` events of one wait.
_REPEAT_EVENT_AFTER = 10.0
_TIMED_OUT = 124
_UNKNOWN = 120
_FAILED = 125


class NeedFailed(HoldfastError):
    """A condition that others wait for cannot be met any more."""

    code = "need_failed"

    def __init__(self, message: str, process: Process, exit_status: int, next: str | None = None) -> None:
        super().__init__(message, next=next or f"holdfast logs {process.name or process.id}")
        self.process = process
        self.exit_status = exit_status


class GivenUp(HoldfastError):
    """The wait was cancelled."""

    code = "given_up"


class Waits:
    """Waits for conditions, each at most once. Safe for many threads."""

    def __init__(self, client: Client, cancelled: threading.Event, events: EventQueue) -> None:
        self._client = client
        self._cancelled = cancelled
        self._events = events
        self._results: dict[tuple[str, Need], _Result] = {}

    def until(self, member: Member, process: Process, need: Need, waiter: Member | None, is_old: bool) -> None:
        """Wait until the condition holds for this member. Raises NeedFailed or GivenUp, the same for all who wait.

        `waiter` is the member that depends on it; None for the member itself. `is_old` says that the process ran
        before this `up`.
        """
        result = self._results.setdefault((member.name, need), _Result())
        with result.lock:
            if not result.is_known:
                result.error = self._wait(member, process, need, waiter, is_old)
                result.is_known = True
        if result.error is not None:
            raise result.error

    def _wait(
        self, member: Member, process: Process, need: Need, waiter: Member | None, is_old: bool
    ) -> HoldfastError | None:
        if is_old and _held_before(member, process, need):
            return None
        wait = _NeedWait(self._client, self._cancelled, self._events, member, need, waiter)
        try:
            process = wait.until_met(process)
        except HoldfastError as error:
            return error
        if need.kind != "log":
            self._events.put(ProjectEvent("ready" if need.kind == "ready" else "completed", member.name, "", process))
        return None


class _Result:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_known = False
        self.error: HoldfastError | None = None


class _NeedWait:
    def __init__(
        self,
        client: Client,
        cancelled: threading.Event,
        events: EventQueue,
        member: Member,
        need: Need,
        waiter: Member | None,
    ) -> None:
        self._client = client
        self._cancelled = cancelled
        self._events = events
        self._member = member
        self._need = need
        self._waiter = waiter
        self._began = time.monotonic()
        self._next_event_after = 0.0

    def until_met(self, process: Process) -> Process:
        """The process as it was when the condition held. Raises NeedFailed, GivenUp."""
        if self._need.kind == "started":
            return process
        while True:
            self._check_time(process)
            process, is_met = self._step(process)
            if is_met:
                return process
            if not state.is_active(process):
                raise self._ended(process)
            if self._need.kind == "ready" and process.ready is False:
                raise NeedFailed(f"{self._member.name} did not become ready in time", process, _TIMED_OUT)
            if process.status == "ended":
                self._cancelled.wait(_SLICE / 10)  # until it is restarted

    def _step(self, process: Process) -> tuple[Process, bool]:
        """One request: the process after it, and whether the condition holds."""
        need = self._need
        if need.kind == "completed":
            process = self._client.wait(process.id, timeout=_SLICE)
            return process, state.has_succeeded(process, self._member)
        if need.kind == "ready":
            process = self._client.wait_for([process.id], until="ready", timeout=_SLICE).processes[0]
            return process, bool(process.ready)
        # From the first byte on: a line that was written before the wait began counts.
        waited = self._client.wait_for([process.id], until="match", match=need.pattern or "", after=0, timeout=_SLICE)
        return waited.processes[0], bool(waited.matches)

    def _check_time(self, process: Process) -> None:
        """Raises GivenUp, NeedFailed. Reports from time to time that the wait goes on."""
        if self._cancelled.is_set():
            raise GivenUp("given up", next="holdfast up")
        member, need, so_far = self._member, self._need, time.monotonic() - self._began
        if so_far >= self._next_event_after:
            self._next_event_after = so_far + _REPEAT_EVENT_AFTER
            waiter, target = (self._waiter.name, member.name) if self._waiter is not None else (member.name, "it")
            self._events.put(ProjectEvent("waiting", waiter, f"waits until {target} {need}", seconds=so_far))
        if need.timeout is not None and so_far > need.timeout:
            raise NeedFailed(f"{member.name} did not write /{need.pattern}/ in {need.timeout:g} s", process, _TIMED_OUT)

    def _ended(self, process: Process) -> NeedFailed:
        if process.exit_code is not None:
            code = process.exit_code or _FAILED
        else:
            code = _UNKNOWN if process.signal is None else 128 + process.signal
        but = {"completed": "instead of completing", "ready": "before it was ready"}
        instead = but.get(self._need.kind, f"before it wrote /{self._need.pattern}/")
        return NeedFailed(f"{self._member.name} ended ({outcome(process)}) {instead}", process, code)


def _held_before(member: Member, process: Process, need: Need) -> bool:
    """Whether the condition held before this `up`. A line of a process that wrote much may no longer be in its log."""
    if need.kind == "completed":
        return state.has_succeeded(process, member)
    if need.kind == "ready":
        return process.ready is True
    return process.dropped_bytes > 0
