"""Bringing a project down: each process when all that need it are gone, with everything that it started."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from typing import NamedTuple

from holdfast.client.process import KillResult, Process
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError
from holdfast.model.units import duration_text
from holdfast.project import memory, order, roll
from holdfast.project.happening import Happening, Tell, Told, tell_nobody
from holdfast.project.spec import Project

#: How often it is told what is waited for.
_TELL_EVERY = 2.0
#: What somebody starts meanwhile is ended, too; but not for ever.
_MOST_ROUNDS = 20


class DownReport(NamedTuple):
    """What was ended, and what is still alive: results of `Client.kill` by the names of members."""

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
    tell: Tell = tell_nobody,
) -> DownReport:
    """End the project, or just those named, in the reverse order of their needs as they were started.

    The name of a project is enough. Returns when nothing is left, or with what survived. What completed is done again
    at the next `up`, unless only some were named.
    """
    name = project if isinstance(project, str) else project.name
    if not names:
        memory.note_down(client, name)
    return end(client, name, names, grace, tell)


def end(client: Client, project: str, names: Collection[str], grace: float | None, tell: Tell) -> DownReport:
    """As `down`, but nothing is said about what completed."""
    report = DownReport({}, {})
    for _ in range(_MOST_ROUNDS):
        alive = _alive(client, project, names)
        if not alive or report.survived:
            break
        _Down(client, project, alive, grace, Told(tell), report).run()
    return report


def force(client: Client, project: str, names: Collection[str] = ()) -> None:
    """End at once what is being ended politely."""
    alive = _alive(client, project, names)
    if alive:
        client.kill(*alive, grace=0)


def _alive(client: Client, project: str, names: Collection[str]) -> list[Process]:
    return [p for p in roll.all_of(client, project) if not names or roll.member_of(p, project) in names]


class _Down:
    def __init__(
        self, client: Client, project: str, alive: list[Process], grace: float | None, told: Told, report: DownReport
    ) -> None:
        self._client = client
        self._project = project
        self._alive = {process.id: process for process in alive}
        self._grace = grace
        self._told = told
        self._report = report
        self._after = _after(alive, project)
        self._gone = {process.id: threading.Event() for process in alive}
        self._asked_at: dict[str, float] = {}
        self._error: HoldfastError | None = None

    def run(self) -> None:
        threads = [threading.Thread(target=self._end, args=(process,), daemon=True) for process in self._alive.values()]
        for thread in threads:
            thread.start()
        threading.Thread(target=self._close_after, args=(threads,), daemon=True).start()
        self._told.tell_all(self._say_who_is_waited_for, _TELL_EVERY)
        if self._error is not None:
            raise self._error

    def _close_after(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join()
        self._told.close()

    def _end(self, process: Process) -> None:
        """In a thread of its own."""
        for other in self._after[process.id]:
            self._gone[other].wait()
        name = roll.member_of(process, self._project)
        self._asked_at[process.id] = time.monotonic()
        self._told.put(Happening("stopping", name, "", process))
        try:
            (result,) = self._client.kill(process, grace=self._grace)
            self._note(name, process, result)
        except HoldfastError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - the top of a thread: whoever waits for it must hear of it
            self._error = HoldfastError(f"{name}: {type(error).__name__}: {error}")
        finally:
            self._asked_at.pop(process.id, None)
            self._gone[process.id].set()

    def _note(self, name: str, process: Process, result: KillResult) -> None:
        took = duration_text(time.monotonic() - self._asked_at[process.id])
        if result.survivors or result.status != "ended":
            self._report.survived[name] = result
            pids = ", ".join(map(str, result.survivors)) or "unknown"
            self._told.put(Happening("survived", name, f"is still alive after {took}: pid {pids}", process))
            return
        self._report.ended[name] = result
        forced = ", by force" if result.forced else ""
        self._told.put(Happening("ended", name, f"ended after {took}{forced}", self._client.inspect(process)))

    def _say_who_is_waited_for(self) -> None:
        limit = "" if self._grace is None else f"; it is forced after {self._grace:g}s"
        for process_id, asked_at in list(self._asked_at.items()):
            process, so_far = self._alive[process_id], time.monotonic() - asked_at
            name = roll.member_of(process, self._project)
            text = f"has been asked to end {duration_text(so_far)} ago and is waited for (pid {process.pid}{limit})"
            self._told.put(Happening("waiting", name, text, process, so_far))


def _after(alive: list[Process], project: str) -> dict[str, list[str]]:
    """By id, those that must be gone before. Where they need each other in a ring, there is no order."""
    ids: dict[str, list[str]] = {}
    for process in alive:
        ids.setdefault(roll.member_of(process, project), []).append(process.id)
    needs = {process.id: [other for n in roll.needs_of(process) for other in ids.get(n, ())] for process in alive}
    return order.dependents(needs) if not order.find_cycle(needs) else {process.id: [] for process in alive}
