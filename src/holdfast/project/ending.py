"""Ending a project: each process with its descendants, after all members that depend on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from functools import partial
from typing import NamedTuple

from holdfast.client.process import KillResult, Process
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError
from holdfast.model.units import duration_text
from holdfast.project import order, state
from holdfast.project.events import EventQueue, OnEvent, ProjectEvent, ignore
from holdfast.project.spec import Project

#: Seconds between two `waiting` events of one process.
_REPEAT_EVENT_AFTER = 2.0
#: Processes that other callers start meanwhile are ended, too, in at most this number of rounds.
_MOST_ROUNDS = 20


class DownReport(NamedTuple):
    """Members that were ended and members that are still alive, by name, with the results of `Client.kill`."""

    ended: dict[str, KillResult]
    survived: dict[str, KillResult]

    @property
    def ok(self) -> bool:
        return not self.survived


def down(
    client: Client,
    project: Project | str,
    names: Collection[str] = (),
    *,
    grace: float | None = None,
    on_event: OnEvent = ignore,
) -> DownReport:
    """End the project, or only the named members, in the reverse order of the dependencies that they started with.

    `project` may be just its name. Returns when nothing is left, or with what survived. Without `names`, completed
    one-shots run again at the next `up`.
    """
    name = project if isinstance(project, str) else project.name
    if not names:
        state.record_down(client, name)
    return end(client, name, names, grace, on_event)


def end(client: Client, project: str, names: Collection[str], grace: float | None, on_event: OnEvent) -> DownReport:
    """As `down`, but completed one-shots still count as completed."""
    report = DownReport({}, {})
    for _ in range(_MOST_ROUNDS):
        alive = _alive(client, project, names)
        if not alive or report.survived:
            break
        _Down(client, project, alive, grace, EventQueue(on_event), report).run()
    return report


def force(client: Client, project: str, names: Collection[str] = ()) -> None:
    """Kill at once, without a grace period."""
    alive = _alive(client, project, names)
    if alive:
        client.kill(*alive, grace=0)


def _alive(client: Client, project: str, names: Collection[str]) -> list[Process]:
    return [p for p in state.alive(client, project) if not names or state.member_of(p, project) in names]


class _Down:
    def __init__(
        self,
        client: Client,
        project: str,
        alive: list[Process],
        grace: float | None,
        events: EventQueue,
        report: DownReport,
    ) -> None:
        self._client = client
        self._project = project
        self._alive = {process.id: process for process in alive}
        self._grace = grace
        self._events = events
        self._report = report
        self._after = _after(alive, project)
        self._gone = {process.id: threading.Event() for process in alive}
        self._asked_at: dict[str, float] = {}
        self._error: HoldfastError | None = None

    def run(self) -> None:
        jobs = [partial(self._end, process) for process in self._alive.values()]
        self._events.run(jobs, tick=self._report_waits, every=_REPEAT_EVENT_AFTER)
        if self._error is not None:
            raise self._error

    def _end(self, process: Process) -> None:
        """Runs in a thread of its own."""
        for other in self._after[process.id]:
            self._gone[other].wait()
        name = state.member_of(process, self._project)
        self._asked_at[process.id] = time.monotonic()
        self._events.put(ProjectEvent("stopping", name, "", process))
        try:
            (result,) = self._client.kill(process, grace=self._grace)
            self._add_result(name, process, result)
        except HoldfastError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - the top of a thread: `run` raises it
            self._error = HoldfastError(f"{name}: {type(error).__name__}: {error}")
        finally:
            self._asked_at.pop(process.id, None)
            self._gone[process.id].set()

    def _add_result(self, name: str, process: Process, result: KillResult) -> None:
        took = duration_text(time.monotonic() - self._asked_at[process.id])
        if result.survivors or result.status != "ended":
            self._report.survived[name] = result
            pids = ", ".join(map(str, result.survivors)) or "unknown"
            self._events.put(ProjectEvent("survived", name, f"is still alive after {took}: pid {pids}", process))
            return
        self._report.ended[name] = result
        forced = ", by force" if result.forced else ""
        self._events.put(ProjectEvent("ended", name, f"ended after {took}{forced}", self._client.inspect(process)))

    def _report_waits(self) -> None:
        limit = "" if self._grace is None else f"; it is forced after {self._grace:g}s"
        for process_id, asked_at in list(self._asked_at.items()):
            process, so_far = self._alive[process_id], time.monotonic() - asked_at
            name = state.member_of(process, self._project)
            text = f"has been asked to end {duration_text(so_far)} ago and is waited for (pid {process.pid}{limit})"
            self._events.put(ProjectEvent("waiting", name, text, process, so_far))


def _after(alive: list[Process], project: str) -> dict[str, list[str]]:
    """By id, the processes that must be gone before it. With a dependency cycle there is no order."""
    ids: dict[str, list[str]] = {}
    for process in alive:
        ids.setdefault(state.member_of(process, project), []).append(process.id)
    needs = {process.id: [other for n in state.needs_of(process) for other in ids.get(n, ())] for process in alive}
    return order.dependents(needs) if not order.find_cycle(needs) else {process.id: [] for process in alive}
