"""Starting a project: each process as soon as its dependencies allow, except those that run already.

No progress is stored. The labels of the processes say which member each is and what it was started from, so an `up`
that follows a killed one continues from what runs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from holdfast.client.process import Process
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError, NotFound, NotNow
from holdfast.project import ending, state, values
from holdfast.project.events import EventKind, EventQueue, OnEvent, ProjectEvent, ignore
from holdfast.project.spec import Member, Need, Project
from holdfast.project.state import ProjectProcesses
from holdfast.project.waiting import GivenUp, NeedFailed, Waits

MemberState: TypeAlias = Literal["started", "replaced", "kept", "failed", "skipped"]


class Outcome(NamedTuple):
    """The result for one member."""

    state: MemberState
    process: Process | None = None
    error: HoldfastError | None = None

    @property
    def is_up(self) -> bool:
        return self.state not in ("failed", "skipped")


class UpReport(NamedTuple):
    """The result for each member, by name; and the processes that run but are not in the file."""

    outcomes: dict[str, Outcome]
    orphans: list[Process]

    @property
    def ok(self) -> bool:
        return all(outcome.error is None for outcome in self.outcomes.values())

    @property
    def failures(self) -> list[HoldfastError]:
        """Errors of members that failed themselves, in the order of the file; those of skipped members are left out."""
        return [o.error for o in self.outcomes.values() if o.error is not None and o.state != "skipped"]

    @property
    def exit_status(self) -> int:
        """The exit code of `holdfast up`: 0, or that of the first failure."""
        return self.failures[0].exit_status if self.failures else 0


def up(
    client: Client,
    project: Project,
    names: Collection[str] = (),
    *,
    profiles: Collection[str] = (),
    wait: bool = True,
    fresh: Collection[str] = (),
    remove_orphans: bool = False,
    grace: float | None = None,
    on_event: OnEvent = ignore,
    cancelled: threading.Event | None = None,
) -> UpReport:
    """Start the project, or the named members with their dependencies, in the order of their dependencies.

    Processes that run as the file has them are kept. Those that changed in the file, or are in `fresh`, are ended and
    started. Returns when everything is started and, with `wait`, everything with a readiness rule is ready. Failures
    are in the report, and members that depend on them are skipped. Raises only errors of the whole project. When
    `cancelled` is set, nothing more is started.
    """
    _check_names(project, [*names, *fresh])
    chosen = project.chosen(tuple(names), tuple(profiles))
    found = state.processes_of(client, project.name)
    _check_file(project, found)
    orphans = [process for name, process in found.running.items() if name not in project.members]
    work = _Up(client, project, found, chosen, fresh, wait, grace, EventQueue(on_event), cancelled or threading.Event())
    outcomes = work.run()
    for orphan in orphans:
        _orphan(client, project, orphan, remove_orphans, grace, on_event)
    return UpReport(outcomes, orphans)


def restart(
    client: Client,
    project: Project,
    names: Collection[str] = (),
    *,
    grace: float | None = None,
    wait: bool = True,
    on_event: OnEvent = ignore,
) -> UpReport:
    """Restart the named members, or all that run, as the file has them now; their dependencies are started if needed.

    They are ended in the reverse order of their dependencies, then started in that order. Raises NotNow when a process
    survives its kill: then nothing is started.
    """
    found = state.processes_of(client, project.name)
    chosen = list(names) or [name for name in project.members if name in found.running]
    report = ending.end(client, project.name, chosen, grace, on_event) if chosen else ending.DownReport({}, {})
    if not report.ok:
        raise NotNow(f"does not die: {', '.join(report.survived)}", next=f"holdfast ps --task {project.task}")
    return up(client, project, chosen, fresh=chosen, wait=wait, grace=grace, on_event=on_event)


class _Up:
    def __init__(
        self,
        client: Client,
        project: Project,
        found: ProjectProcesses,
        chosen: list[str],
        fresh: Collection[str],
        wait: bool,
        grace: float | None,
        events: EventQueue,
        cancelled: threading.Event,
    ) -> None:
        self._client = client
        self._project = project
        self._found = found
        self._chosen = [project.members[name] for name in chosen]
        self._wait = wait
        self._grace = grace
        self._events = events
        self._cancelled = cancelled
        self._down_at = state.down_at(client, project.name)
        #: Members to start again: a process that was started before this time is not kept.
        self._fresh = dict.fromkeys(chosen if self._is_all_done(found) else fresh, time.time())
        self._outcomes: dict[str, Outcome] = {}
        self._settled = {name: threading.Event() for name in chosen}
        self._waits = Waits(client, cancelled, events)

    def run(self) -> dict[str, Outcome]:
        try:
            self._events.run([partial(self._bring_up, member) for member in self._chosen])
        except BaseException:
            self._cancelled.set()
            raise
        return {member.name: self._outcomes[member.name] for member in self._chosen}

    def _bring_up(self, member: Member) -> None:
        """Runs in a thread of its own."""
        try:
            self._try(member)
        except HoldfastError as error:
            self._fail(member, error)
        except Exception as error:  # noqa: BLE001 - the top of a thread: other threads wait for its outcome
            self._fail(member, HoldfastError(f"{member.name}: {type(error).__name__}: {error}"))
        finally:
            self._settled[member.name].set()

    def _try(self, member: Member) -> None:
        outcome = self._kept(member, self._found)
        if outcome is None:
            try:
                for name, need in member.needs.items():
                    self._await_need(member, name, need)
            except HoldfastError as unmet:
                self._outcomes[member.name] = Outcome("skipped", None, unmet)
                self._put("skipped", member, f"is not started: {unmet.message}")
                return
            outcome = self._make(member)
        self._outcomes[member.name] = outcome
        self._settled[member.name].set()  # members that only need it started go on
        if self._wait and member.has_ready_rule:
            self._wait_until(member, Need("ready"), None)

    def _await_need(self, member: Member, name: str, need: Need) -> None:
        """Raises the error of the dependency when it failed or cannot be met."""
        self._settled[name].wait()
        outcome = self._outcomes[name]
        if outcome.error is not None:
            raise outcome.error
        if need.kind != "started":
            self._wait_until(self._project.members[name], need, member)

    def _wait_until(self, other: Member, need: Need, waiter: Member | None) -> None:
        """Raises NeedFailed, GivenUp."""
        outcome = self._outcomes[other.name]
        assert outcome.process is not None
        try:
            self._waits.until(other, outcome.process, need, waiter, is_old=outcome.state == "kept")
        except NeedFailed as failed:
            self._fail(other, failed)
            raise

    def _fail(self, member: Member, error: HoldfastError) -> None:
        known = self._outcomes.get(member.name)
        if known is None or known.error is not error:  # several members may report the same error
            process = getattr(error, "process", None)
            self._outcomes[member.name] = Outcome("failed", process, error)
            self._put("failed", member, error.message, process)

    def _kept(self, member: Member, found: ProjectProcesses) -> Outcome | None:
        """The outcome when it runs as the file has it or has completed; else None."""
        running = found.running.get(member.name)
        kept = running if running is not None and state.is_unchanged(running, member) else self._done(member, found)
        if kept is None or (kept.started_at or 0.0) < self._fresh.get(member.name, 0.0):
            return None
        self._put("kept", member, "runs unchanged" if kept is running else "has completed before", kept)
        return Outcome("kept", kept)

    def _make(self, member: Member) -> Outcome:
        """Start it, in place of one that changed; unless another caller has started it meanwhile."""
        result: MemberState = "started"
        while True:
            with state.lock(self._client, self._project.name):
                self._check_not_cancelled()
                found = state.processes_of(self._client, self._project.name)
                kept = self._kept(member, found)
                if kept is not None:
                    return kept
                running = found.running.get(member.name)
                if running is None:
                    return Outcome(result, self._start(member))
            result = "replaced"
            self._put("replacing", member, "is ended, to be started anew", running)
            _kill(self._client, running, self._grace)

    def _start(self, member: Member) -> Process:
        process = self._client.run(
            member.command,
            name=self._project.process_name(member.name),
            task=self._project.task,
            cwd=member.cwd,
            env=member.env,
            labels=state.labels(self._project, member),
            **member.options,
        )
        for note in process.notes:
            self._put("note", member, note, process)
        self._put("started", member, "", process)
        return process

    def _done(self, member: Member, found: ProjectProcesses) -> Process | None:
        """The successful, unchanged run of a one-shot since the project was last brought down; else None."""
        process = found.ended.get(member.name)
        if process is None or not member.oneshot or (process.started_at or 0.0) < self._down_at:
            return None
        return process if state.is_unchanged(process, member) and state.has_succeeded(process, member) else None

    def _is_all_done(self, found: ProjectProcesses) -> bool:
        """Whether every chosen member has completed: then `up` does not continue the last run but repeats it."""
        return all(found.running.get(member.name) is None and self._done(member, found) for member in self._chosen)

    def _check_not_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise GivenUp("given up before it was started", next="holdfast up")
        if state.down_at(self._client, self._project.name) != self._down_at:
            raise NotNow("the project was brought down meanwhile", next="holdfast up")

    def _put(self, kind: EventKind, member: Member, text: str, process: Process | None = None) -> None:
        self._events.put(ProjectEvent(kind, member.name, text, process))


def _orphan(
    client: Client, project: Project, process: Process, remove: bool, grace: float | None, on_event: OnEvent
) -> None:
    name = state.member_of(process, project.name)
    if not remove:
        on_event(ProjectEvent("orphan", name, "runs, but is not in the file: --remove-orphans ends it", process))
        return
    _kill(client, process, grace)
    on_event(ProjectEvent("ended", name, "was not in the file any more", client.inspect(process.id)))


def _kill(client: Client, process: Process, grace: float | None) -> None:
    (result,) = client.kill(process, grace=grace)
    if result.survivors or result.status != "ended":
        pids = ", ".join(map(str, result.survivors))
        raise NotNow(f"{process.name or process.id} does not die (pid {pids})", next=f"holdfast inspect {process.id}")


def _check_names(project: Project, names: list[str]) -> None:
    for name in names:
        if name not in project.members:
            hint = values.similar(name, list(project.members))
            known = ", ".join(project.members)
            raise NotFound(f"no process {name[:80]!r} in {project.file}{hint}", next=f"known: {known[:400]}")


def _check_file(project: Project, found: ProjectProcesses) -> None:
    """Refuse a second file with the same project name: each would manage the processes of the other."""
    for process in found.running.values():
        other = state.file_of(process)
        if other is not None and other != project.file[:4000] and os.path.exists(other):
            next = f"give one another name (-p NAME), or: holdfast down -f {other}"
            raise NotNow(f"a project {project.name} runs already, from {other}", next=next)
