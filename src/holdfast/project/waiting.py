"""Waiting until another process is ready, has completed, or has written a line."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from holdfast.client.process import Process, outcome
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError
from holdfast.project import roll
from holdfast.project.spec import Member, Need

#: How long a single question waits: what was given up is noticed that late.
_SLICE = 1.0
_TIMED_OUT = 124
_UNKNOWN = 120
_FAILED = 125


class NeedFailed(HoldfastError):
    """Something that others wait for will not come true."""

    code = "need_failed"

    def __init__(self, message: str, process: Process, exit_status: int, next: str | None = None) -> None:
        super().__init__(message, next=next or f"holdfast logs {process.name or process.id}")
        self.process = process
        self.exit_status = exit_status


class GivenUp(HoldfastError):
    """Nobody waits any more."""

    code = "given_up"


class Watch:
    """One wait: whether it is still wanted, and how long it has taken."""

    def __init__(self, cancelled: threading.Event, still_waits: Callable[[float], None]) -> None:
        self._cancelled = cancelled
        self._still_waits = still_waits
        self._began = time.monotonic()

    def check(self) -> float:
        """The seconds so far. Raises GivenUp."""
        if self._cancelled.is_set():
            raise GivenUp("given up", next="holdfast up")
        so_far = time.monotonic() - self._began
        self._still_waits(so_far)
        return so_far

    def pause(self) -> None:
        self._cancelled.wait(_SLICE / 10)


def until(client: Client, member: Member, process: Process, need: Need, watch: Watch) -> Process:
    """The process when the need is met. Raises NeedFailed, GivenUp."""
    if need.kind == "completed":
        return _completed(client, member, process, watch)
    if need.kind == "ready":
        return _ready(client, member, process, watch)
    if need.kind == "log":
        return _written(client, member, process, need, watch)
    return process


def _completed(client: Client, member: Member, process: Process, watch: Watch) -> Process:
    while True:
        watch.check()
        process = client.wait(process.id, timeout=_SLICE)
        if roll.has_succeeded(process, member):
            return process
        if not roll.lives(process):
            raise ended(member, process, "instead of completing")
        if process.status == "ended":
            watch.pause()  # until it is started again


def _ready(client: Client, member: Member, process: Process, watch: Watch) -> Process:
    while True:
        watch.check()
        waited = client.wait_for([process.id], until="ready", timeout=_SLICE)
        process = waited.processes[0]
        if process.ready:
            return process
        if not roll.lives(process):
            raise ended(member, process, "before it was ready")
        if process.ready is False:
            raise NeedFailed(f"{member.name} did not become ready in time", process, _TIMED_OUT)
        if process.status == "ended":
            watch.pause()


def _written(client: Client, member: Member, process: Process, need: Need, watch: Watch) -> Process:
    """Until a line matches, from the first one on: what was written before we looked counts."""
    watch.check()
    while True:
        waited = client.wait_for([process.id], until="match", match=need.pattern or "", after=0, timeout=_SLICE)
        process = waited.processes[0]
        if waited.matches:
            return process
        if not roll.lives(process):
            raise ended(member, process, f"before it wrote /{need.pattern}/")
        _check_time(member, process, need, watch.check())
        if process.status == "ended":
            watch.pause()


def _check_time(member: Member, process: Process, need: Need, so_far: float) -> None:
    if need.timeout is not None and so_far > need.timeout:
        raise NeedFailed(f"{member.name} did not write /{need.pattern}/ in {need.timeout:g} s", process, _TIMED_OUT)


def ended(member: Member, process: Process, instead: str) -> NeedFailed:
    if process.exit_code is not None:
        code = process.exit_code or _FAILED
    else:
        code = _UNKNOWN if process.signal is None else 128 + process.signal
    return NeedFailed(f"{member.name} ended ({outcome(process)}) {instead}", process, code)
