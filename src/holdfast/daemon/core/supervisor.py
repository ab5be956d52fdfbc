"""Reads the keeper's reports and moves processes from state to state.

A change is written first, then shown, then its events are published. What the bundle records is written there: its row
follows.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple

from holdfast.daemon.core.log import note, note_soon
from holdfast.daemon.core.registry import Registry
from holdfast.daemon.core.tasks import BackgroundTasks, KeyedLocks
from holdfast.errors import HoldfastError
from holdfast.model import events, process_rules
from holdfast.model.events import Event, Notice
from holdfast.model.lifecycle import (
    ChildEnded,
    ChildStarted,
    Ended,
    Exited,
    Fact,
    ForceUsed,
    Requested,
    Restarting,
    RestartPlanned,
    Signaled,
    State,
    Status,
    StopAsked,
    StopReason,
    Unseen,
    WitnessesGone,
    advance,
    end_signal,
    exit_code,
    reason,
    stop_of,
)
from holdfast.model.probes.usage import Track, most
from holdfast.model.process import HeldProcess, Leftover, Meta, ProcessId, StreamExtent
from holdfast.model.process_rules import RestartVerdict
from holdfast.records import replace
from holdfast.store.store import Store
from holdfast.store.writer import Edit

Report = dict[str, Any]

#: Bytes for a session's name in the record of a stop. Only names that are not ASCII can be longer.
_LONGEST_ASKER = 700
_LONGEST_ESCAPE = 12
#: An end that no one waits for at the inbox or as an event shares a commit, within this time.
_END_LINGER = 0.02


class _ShownChange(NamedTuple):
    before: HeldProcess | None
    after: HeldProcess
    notice: Notice | None = None
    """Of its end, as it is to be written."""


class Supervisor:
    """Moves processes from state to state. Changes of one process happen one after the other."""

    def __init__(
        self,
        registry: Registry,
        store: Store,
        background: BackgroundTasks,
        tracks_of: Callable[[HeldProcess], dict[ProcessId, Track]] = lambda _: {},
        claimed: Callable[[Notice], Notice] = lambda notice: notice,
        begins: Callable[[str], bool] = lambda _: False,
        measured: Callable[[HeldProcess], Awaitable[dict[str, StreamExtent]]] | None = None,
        is_urgent: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`tracks_of` gives the last measured usage in the place of a process; that of an ended process is removed.
        `claimed` gets each notice before it is written and returns it as it is to be written. `begins` says, once, that
        a session is new. `measured` gives the extent of its logs as they are on disk. `is_urgent` says whether a caller
        waits for the events or notices of a session.
        """
        self._registry = registry
        self._store = store
        self._background = background
        self._tracks_of = tracks_of
        self._claimed = claimed
        self._begins = begins
        self._measured = measured
        self._is_urgent = is_urgent
        self._turns: KeyedLocks[ProcessId] = KeyedLocks()
        #: Called before an end is committed; gives the process as it is to be committed, and events that come first.
        self.before_end: Callable[[HeldProcess], Awaitable[tuple[HeldProcess, list[Event]]]] = _no_events
        #: Changes that are shown, and whose rows and events are still to be saved: callers get their replies first.
        self._shown: list[_ShownChange] = []
        #: Reports that are being applied, or wait for their turn.
        self._reports = 0
        #: Set when a process is to be run again.
        self.restarts_changed = asyncio.Event()

    def turn(self, process_id: ProcessId) -> asyncio.Lock:
        """To be held while the state of this process is being changed. First come, first served."""
        return self._turns[process_id]

    def is_of(self, process_id: str, place: str | None) -> bool:
        """Whether it may be a process of this place. The keeper of a container must not speak for others."""
        process = self._registry.get(ProcessId(process_id))
        return process is None or process.meta.place == place

    def apply_fact(self, place: str | None, fact: dict[str, Any]) -> None:
        """Apply a fact of the keeper of a place. Does not wait; facts of one process keep their order."""
        if not self.is_of(fact["id"], place) or fact.get("report", fact)["id"] != fact["id"]:
            return
        match fact["fact"]:
            case "adopted" | "ended" | "closed":
                if not self._take_end_at_once(fact["report"]):
                    self._reports += 1
                    self._background.start(self.take(fact["report"]), fact["fact"]).add_done_callback(self._taken)
            case "disk_full":
                self._trouble(fact["id"], "disk_full")
            case "disk_free" | "recovered":
                self._trouble(fact["id"], None)
            case "quarantined":
                self._trouble(fact["id"], f"quarantined: {fact['message']}")

    def _taken(self, _: object) -> None:
        self._reports -= 1

    def _take_end_at_once(self, report: Report) -> bool:
        """Show the end of a process for which nothing has to be awaited. Whether it was one."""
        process_id = ProcessId(report["id"])
        process = self._registry.get(process_id)
        if process is None or not process.is_up or report["exit"] is None or run_of(report) != process.run:
            return False
        if self._reports or self._turns.is_held(process_id) or not _is_plain(process.meta):
            return False
        process = applied(process, report)
        if not process.has_ended:
            return False  # it is run again: it was stopped for a restart
        self._show_end(self._with_last_used(process))
        return True

    async def take(self, report: Report) -> None:
        """Apply a report, if its process is known."""
        process_id = ProcessId(report["id"])
        async with self.turn(process_id):
            process = self._registry.get(process_id)
            if process is not None:
                await self.apply(process, report)

    async def apply(self, process: HeldProcess, report: Report) -> HeldProcess:
        """The process as the report describes it. To be called in its turn.

        An end is in the bundle, so that it is shown at once. That of a place which may become unreachable, and one that
        is the last of several runs, is in the store before.
        """
        run = run_of(report)
        if run < process.run:
            return process  # of a run that is over
        is_final = process.has_ended or (process.is_restarting and not _was_stopped_late(report))
        if run == process.run and is_final:
            return self._rest(process, stream_extents(report))
        before, process = process, applied(process, report)
        if process.has_ended:
            await self.end(process, is_in_bundle=process.meta.place is None and process.meta.restart == "never")
        elif process.is_restarting:
            self.wait_for_restart(process)
        elif isinstance(before.state, Requested):
            self._show_first(_ShownChange(before, process))
        elif process.state != before.state:
            self.show(process)
        else:
            self._registry.put(process)  # the size of its output is measured on request
        return process

    def wait_for_restart(self, process: HeldProcess) -> None:
        """Between two runs. The bundle holds the same facts, so the row may follow later."""
        self.show(process)
        self.restarts_changed.set()
        assert isinstance(process.state, Restarting)
        last = process.state.last
        restart_in = round(process.state.due - time.time(), 3)
        note("restarting", process=process.id, **_outcome(last), restart_in=restart_in)

    async def lose(self, process_id: ProcessId, why: str | None = None) -> None:
        """The keeper knows nothing of this process. `why`: what is known about the reason."""
        async with self.turn(process_id):
            process = self._registry.get(process_id)
            if process is None:
                return
            streams = process.streams if self._measured is None else await self._measured(process)
            closed = {name: replace(stream, closed=True) for name, stream in streams.items()}
            if process.has_ended:
                self._rest(process, closed)
            elif process.is_queued:
                return
            elif process.is_active:
                state = advance(process.state, WitnessesGone(time.time()))
                written = closed["out"].end if "out" in closed else None
                await self.end(replace(process, state=state, streams=closed, exit_offset=written, trouble=why))
            else:
                self._registry.drop(process_id)
                self._store.remove_soon([process_id])
                note("start-failed", process=process_id)

    def stop_asked(self, process_id: ProcessId, by: str | None, why: StopReason) -> None:
        """Show that its end was requested. The keeper's record of the stop is the one that counts."""
        process = self._registry.get(process_id)
        if process is not None and process.is_up:
            self._registry.put(replace(process, state=advance(process.state, StopAsked(by, why, time.time()))))

    def force_used(self, process_id: ProcessId) -> None:
        """SIGKILL was needed, maybe after the first process of the tree had ended."""
        process = self._registry.get(process_id)
        if process is not None and (stop := stop_of(process.state)) is not None and not stop.forced:
            self.show(replace(process, state=advance(process.state, ForceUsed())))

    async def change(
        self, process_id: ProcessId, alter: Callable[[HeldProcess], HeldProcess | None]
    ) -> HeldProcess | None:
        """In its turn, the process after `alter`, committed with its events; None where it is unknown, or `alter`
        returns None because there is nothing to change.
        """
        async with self.turn(process_id):
            process = self._registry.get(process_id)
            process = alter(process) if process is not None else None
            if process is not None:
                await self.commit(process, self.happened(process))
            return process

    async def commit(
        self, process: HeldProcess, happened: Sequence[Event] = (), edit: Edit | None = None, needs_disk: bool = False
    ) -> None:
        """The one step by which a process changes: the row, its events and their notices are written in one
        transaction; then the process is shown, and the events are published. To be called in its turn.

        On a full disk the process is shown all the same, because what happened is true, and the store writes the row
        when there is space. With `needs_disk` that raises instead, and nothing is shown.
        """
        self._save_shown()
        try:
            if edit is None:
                await self._store.save(process, happened)
            else:
                await self._store.change(edit, happened, [process])
        except HoldfastError as failed:
            if needs_disk:
                raise
            note("row-late", process=process.id, why=failed.message)
        self._registry.put(process)

    def show(self, process: HeldProcess, *more: Event) -> None:
        """As commit, for changes that are in the bundle, too: the row may follow later."""
        happened = [*self.happened(process), *more]
        self._registry.put(process)
        self._store.save_soon(process, happened)

    async def end(self, process: HeldProcess, is_in_bundle: bool = False) -> None:
        """Commit an end, with the events of `before_end` first. To be called in its turn.

        With `is_in_bundle` the process is shown at once, and its row follows: a new daemon finds the end in the bundle.
        """
        process = self._with_last_used(process)
        if is_in_bundle and _is_plain(process.meta):
            self._show_end(process)
            return
        first = list[Event]()
        if process.meta.watch or process.meta.watch_regex:
            process, first = await self.before_end(process)
        happened = [*first, *self.happened(process)]
        if is_in_bundle:
            self._registry.put(process)
            self._store.save_soon(process, happened, self._linger(process))
        else:
            await self.commit(process, happened)
        _note_end(process)

    def _show_end(self, process: HeldProcess) -> None:
        """Show an end that the bundle has. Who waits for it gets a reply that its notice counts as delivered by, so the
        notice is claimed now, and all the rest follows.
        """
        notice = events.completion(process, time.time())
        self._show_first(_ShownChange(self._registry.get(process.id), process, notice and self._claimed(notice)))

    def _show_first(self, change: _ShownChange) -> None:
        self._shown.append(change)
        self._registry.put(change.after)  # the callers that this wakes run before what is called soon
        asyncio.get_running_loop().call_soon(self._save_shown)

    def happened(self, process: HeldProcess) -> list[Event]:
        """The events of the change from the process as it is shown to this one."""
        self._save_shown()
        return self._events(self._registry.get(process.id), process)

    def _save_shown(self) -> None:
        """Comes before anything else is saved or published, so that each change is recorded before what follows it."""
        while self._shown:
            before, process, notice = self._shown.pop(0)
            happened = self._events(before, process, notice)
            if process.has_ended:
                self._store.save_soon(process, happened, self._linger(process))
                _note_end(process)
            else:
                self._store.save_soon(process, happened)

    def _linger(self, ended: HeldProcess) -> float:
        return 0.0 if self._is_urgent(ended.meta.session) else _END_LINGER

    def _events(self, before: HeldProcess | None, process: HeldProcess, claimed: Notice | None = None) -> list[Event]:
        """`claimed` is the notice of its end, if that is claimed already."""
        now, session = time.time(), process.meta.session
        happened = events.of_change(before, process, now, claimed)
        if happened and process.run == 0 and happened[0].topic in _FIRST and self._begins(session):
            happened.insert(0, Event("session.start", now, {"session": session, "parent": process.meta.parent_session}))
        return [
            one if one.notice in (None, claimed) else replace(one, notice=self._claimed(one.notice)) for one in happened
        ]

    def _with_last_used(self, process: HeldProcess) -> HeldProcess:
        used = self._tracks_of(process).pop(process.id, None)
        if used is None:
            return process
        cpu_seconds = used.cpu_seconds if process.cpu_seconds is None else process.cpu_seconds
        return replace(process, cpu_seconds=cpu_seconds, peak_rss=most(used.peak_rss_bytes, process.peak_rss))

    def _rest(self, process: HeldProcess, streams: dict[str, StreamExtent]) -> HeldProcess:
        """Output that descendants of an ended process still wrote, and whether its streams are closed now."""
        if streams != process.streams:
            process = replace(process, streams=streams)
            self.show(process)
        return process

    def _trouble(self, process_id: str, trouble: str | None) -> None:
        process = self._registry.get(ProcessId(process_id))
        if process is not None and process.trouble != trouble:
            self._registry.put(replace(process, trouble=trouble))
            note("trouble", process=process_id, what=trouble or "over")


#: Events with which a process becomes known.
_FIRST = ("process.started", "process.queued")


def _outcome(state: State) -> dict[str, object]:
    return {"reason": reason(state), "code": exit_code(state), "signal": end_signal(state)}


def _is_plain(meta: Meta) -> bool:
    """Whether an end of it is final and needs nothing but its report."""
    return meta.place is None and meta.restart == "never" and not meta.watch and not meta.watch_regex


def _note_end(process: HeldProcess) -> None:
    note_soon("ended", process=process.id, **_outcome(process.state))
    if process.gave_up:
        note("gave-up", process=process.id, restarts_in_a_row=process.streak)


async def _no_events(process: HeldProcess) -> tuple[HeldProcess, list[Event]]:
    return process, []


def _facts(report: Report) -> Iterator[Fact]:
    """What happened to the process, in order. The keeper records a stop only before the end."""
    born, stop, end = report["born"], report["stop"], report["exit"]
    yield ChildStarted(born["pid"], born["at"])
    if stop is not None and not stop.get("late"):
        yield _stop_asked(stop)
        if stop["forced"]:
            yield ForceUsed()
    if end is not None:
        yield ChildEnded(_status(end), end["at"], bool(end.get("oom")))


def applied(process: HeldProcess, report: Report) -> HeldProcess:
    """The process as the report describes it. The report covers the whole run, so earlier knowledge of the run is
    replaced; whether the process is run again follows from it.
    """
    state: State = Requested()
    for fact in _facts(report):
        state = advance(state, fact)
    end = report["exit"] or {}
    stdin = report["stdin"]
    run, streak = run_of(report), int(report["born"].get("streak", 0))
    verdict = RestartVerdict() if isinstance(state, Ended) else RestartVerdict(streak=streak)
    if isinstance(state, Ended) and (process.meta.restart != "never" or state.stop is not None):
        verdict = process_rules.after_end(process.meta, state, streak)
        state = _planned(state, verdict, report["stop"])
    return replace(
        process,
        state=state,
        run=run,
        streak=verdict.streak,
        gave_up=verdict.gave_up,
        deadline_notified=process.deadline_notified and run == process.run,
        streams=stream_extents(report),
        exit_offset=end.get("ends", {}).get("out"),
        leftovers=tuple(Leftover(pid, start) for pid, start in end.get("leftovers", ())),
        stdin_open=not end and stdin is not None and stdin["open"],
        # What went wrong right after the start may be known before the report of the start is applied.
        trouble=report.get("trouble") or (process.trouble if isinstance(process.state, Requested) else None),
        cpu_seconds=end.get("cpu", process.cpu_seconds),
        peak_rss=end.get("peak") or process.peak_rss,
        group=report["born"].get("group"),
        memory_group=report["born"].get("limits", {}).get("memory"),
    )


def run_of(report: Report) -> int:
    """The number of the run that the report describes; the first is 0."""
    return int(report["born"].get("run", 0))


def _was_stopped_late(report: Report) -> bool:
    """Whether its end was requested when its last run was over."""
    return bool((report["stop"] or {}).get("late"))


def _planned(state: Ended, verdict: RestartVerdict, stop: dict[str, Any] | None) -> State:
    if verdict.due is None:
        return state
    waiting = advance(state, RestartPlanned(verdict.due))
    return advance(waiting, _stop_asked(stop)) if stop is not None and stop.get("late") else waiting


def _stop_asked(stop: dict[str, Any]) -> StopAsked:
    return StopAsked(stop["by"] or None, stop["reason"], stop["at"])


def stream_extents(report: Report) -> dict[str, StreamExtent]:
    return {
        name: StreamExtent(extent["first"], extent["end"], extent["closed"])
        for name, extent in report["streams"].items()
    }


def asker(session: str | None) -> str:
    """The name of a session for the record of a stop, cut to the size that fits."""
    name = session or ""
    return name if len(json.dumps(name)) <= _LONGEST_ASKER else name[: _LONGEST_ASKER // _LONGEST_ESCAPE]


def _status(end: dict[str, Any]) -> Status:
    if end["code"] is not None:
        return Exited(end["code"])
    if end["signal"] is not None:
        return Signaled(end["signal"])
    return Unseen()
