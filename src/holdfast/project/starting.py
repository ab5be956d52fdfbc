"""Bringing a project up: each process as soon as what it needs is there, and nothing that is there already.

Nothing is remembered here. What runs says itself which member it is and what it was started from, so whoever is killed
in between is followed by the next `up`, which goes on from what it finds.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection
from typing import Literal, NamedTuple, TypeAlias

from holdfast.client.process import Process
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError, NotFound, NotNow
from holdfast.project import memory, roll, values
from holdfast.project.happening import Happening, Kind, Tell, Told, tell_nobody
from holdfast.project.meeting import Meetings
from holdfast.project.roll import Roll
from holdfast.project.spec import Member, Need, Project
from holdfast.project.waiting import GivenUp, NeedFailed

State: TypeAlias = Literal["started", "replaced", "kept", "failed", "skipped"]


class Outcome(NamedTuple):
    """What became of one member."""

    state: State
    process: Process | None = None
    error: HoldfastError | None = None

    @property
    def is_up(self) -> bool:
        return self.state not in ("failed", "skipped")


class UpReport(NamedTuple):
    """What became of each member, by name; and what runs but is not in the file."""

    outcomes: dict[str, Outcome]
    orphans: list[Process]

    @property
    def ok(self) -> bool:
        return all(outcome.error is None for outcome in self.outcomes.values())

    @property
    def failures(self) -> list[HoldfastError]:
        """What went wrong first-hand, in the order of the file."""
        return [o.error for o in self.outcomes.values() if o.error is not None and o.state != "skipped"]

    @property
    def exit_status(self) -> int:
        """0, or what a command line ends with for the first failure."""
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
    tell: Tell = tell_nobody,
    cancelled: threading.Event | None = None,
) -> UpReport:
    """Start the project, or those named with what they need, in the order of their needs.

    What runs as the file has it is left alone; what runs otherwise, or is in `fresh`, is ended and started. Returns
    when everything is started and, with `wait`, what has a rule for it is ready. What fails is in the report, and what
    needs it is not started. Raises only what concerns the whole project. `cancelled` gives up: no more is started.
    """
    _check_names(project, [*names, *fresh])
    chosen = project.chosen(tuple(names), tuple(profiles))
    found = roll.call(client, project.name)
    _check_file(project, found)
    orphans = [process for name, process in found.running.items() if name not in project.members]
    work = _Up(client, project, found, chosen, fresh, wait, grace, Told(tell), cancelled or threading.Event())
    outcomes = work.run()
    for orphan in orphans:
        _orphan(client, project, orphan, remove_orphans, grace, tell)
    return UpReport(outcomes, orphans)


class _Up:
    def __init__(
        self,
        client: Client,
        project: Project,
        found: Roll,
        chosen: list[str],
        fresh: Collection[str],
        wait: bool,
        grace: float | None,
        told: Told,
        cancelled: threading.Event,
    ) -> None:
        self._client = client
        self._project = project
        self._found = found
        self._chosen = [project.members[name] for name in chosen]
        self._wait = wait
        self._grace = grace
        self._told = told
        self._cancelled = cancelled
        self._down_at = memory.down_at(client, project.name)
        #: What was started before then does not count.
        self._fresh = dict.fromkeys(chosen if self._is_all_done(found) else fresh, time.time())
        self._outcomes: dict[str, Outcome] = {}
        self._settled = {name: threading.Event() for name in chosen}
        self._meetings = Meetings(client, cancelled, told)

    def run(self) -> dict[str, Outcome]:
        threads = [threading.Thread(target=self._bring_up, args=(member,), daemon=True) for member in self._chosen]
        for thread in threads:
            thread.start()
        threading.Thread(target=self._close_after, args=(threads,), daemon=True).start()
        try:
            self._told.tell_all()
        except BaseException:
            self._cancelled.set()
            raise
        return {member.name: self._outcomes[member.name] for member in self._chosen}

    def _close_after(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join()
        self._told.close()

    def _bring_up(self, member: Member) -> None:
        """In a thread of its own."""
        try:
            self._try(member)
        except HoldfastError as error:
            self._fail(member, error)
        except Exception as error:  # noqa: BLE001 - the top of a thread: whoever waits for it must hear of it
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
                self._tell("skipped", member, f"is not started: {unmet.message}")
                return
            outcome = self._make(member)
        self._outcomes[member.name] = outcome
        self._settled[member.name].set()  # whoever needs it to be started need not wait for what follows
        if self._wait and member.has_ready_rule:
            self._meet(member, Need("ready"), None)

    def _await_need(self, member: Member, name: str, need: Need) -> None:
        """Raises what keeps it from being met."""
        self._settled[name].wait()
        outcome = self._outcomes[name]
        if outcome.error is not None:
            raise outcome.error
        if need.kind != "started":
            self._meet(self._project.members[name], need, member)

    def _meet(self, other: Member, need: Need, waiter: Member | None) -> None:
        """Wait for it. Raises what keeps it from being met."""
        outcome = self._outcomes[other.name]
        assert outcome.process is not None
        try:
            self._meetings.meet(other, outcome.process, need, waiter, is_old=outcome.state == "kept")
        except NeedFailed as failed:
            self._fail(other, failed)
            raise

    def _fail(self, member: Member, error: HoldfastError) -> None:
        known = self._outcomes.get(member.name)
        if known is None or known.error is not error:  # several may wait for the same
            process = getattr(error, "process", None)
            self._outcomes[member.name] = Outcome("failed", process, error)
            self._tell("failed", member, error.message, process)

    def _kept(self, member: Member, found: Roll) -> Outcome | None:
        """When it runs as the file has it, or has done its work: there is nothing to do, and nothing to wait for."""
        running = found.running.get(member.name)
        kept = running if running is not None and roll.is_as(running, member) else self._done(member, found)
        if kept is None or (kept.started_at or 0.0) < self._fresh.get(member.name, 0.0):
            return None
        self._tell("kept", member, "runs unchanged" if kept is running else "has completed before", kept)
        return Outcome("kept", kept)

    def _make(self, member: Member) -> Outcome:
        """Start it, in place of one that runs otherwise; unless somebody else was faster."""
        state: State = "started"
        while True:
            with memory.turn(self._client, self._project.name):
                self._check_wanted()
                found = roll.call(self._client, self._project.name)
                kept = self._kept(member, found)
                if kept is not None:
                    return kept
                running = found.running.get(member.name)
                if running is None:
                    return Outcome(state, self._start(member))
            state = "replaced"
            self._tell("replacing", member, "is ended, to be started anew", running)
            _end(self._client, running, self._grace)

    def _start(self, member: Member) -> Process:
        process = self._client.run(
            member.command,
            name=self._project.process_name(member.name),
            task=self._project.task,
            cwd=member.cwd,
            env=member.env,
            labels=roll.labels(self._project, member),
            **member.options,
        )
        for note in process.notes:
            self._tell("note", member, note, process)
        self._tell("started", member, "", process)
        return process

    def _done(self, member: Member, found: Roll) -> Process | None:
        """The run of a one-shot that still counts."""
        process = found.ended.get(member.name)
        if process is None or not member.oneshot or (process.started_at or 0.0) < self._down_at:
            return None
        return process if roll.is_as(process, member) and roll.has_succeeded(process, member) else None

    def _is_all_done(self, found: Roll) -> bool:
        """Whether all has completed: then this is not the rest of the last time, but the next."""
        return all(found.running.get(member.name) is None and self._done(member, found) for member in self._chosen)

    def _check_wanted(self) -> None:
        if self._cancelled.is_set():
            raise GivenUp("given up before it was started", next="holdfast up")
        if memory.down_at(self._client, self._project.name) != self._down_at:
            raise NotNow("the project was brought down meanwhile", next="holdfast up")

    def _tell(
        self, kind: Kind, member: Member, text: str, process: Process | None = None, seconds: float | None = None
    ) -> None:
        self._told.put(Happening(kind, member.name, text, process, seconds))


def _orphan(client: Client, project: Project, process: Process, remove: bool, grace: float | None, tell: Tell) -> None:
    name = roll.member_of(process, project.name)
    if not remove:
        tell(Happening("orphan", name, "runs, but is not in the file: --remove-orphans ends it", process))
        return
    _end(client, process, grace)
    tell(Happening("ended", name, "was not in the file any more", client.inspect(process.id)))


def _end(client: Client, process: Process, grace: float | None) -> None:
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


def _check_file(project: Project, found: Roll) -> None:
    """Two files with one name for their projects would take each other's processes for theirs."""
    for process in found.running.values():
        other = roll.file_of(process)
        if other is not None and other != project.file[:4000] and os.path.exists(other):
            next = f"give one another name (-p NAME), or: holdfast down -f {other}"
            raise NotNow(f"a project {project.name} runs already, from {other}", next=next)
