"""Watching output: each watched stream is scanned as it grows, and matches are published by the rules.

The cursor, the state of the rules and the notices are persisted in one transaction. After a crash of any part scanning
goes on from the cursor: no match is lost, and none is published twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.log import note
from holdfast.daemon.core.tasks import pause
from holdfast.daemon.streams import output
from holdfast.daemon.workers.match_events import NAME, MatchEvents
from holdfast.daemon.workers.watch import WatchBroken, WatchScan
from holdfast.errors import HoldfastError
from holdfast.model.events import Event
from holdfast.model.notices import watching
from holdfast.model.notices.watching import WatchOutcome, WatchRules, WatchState
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.records import replace
from holdfast.store import rows

#: The pause between two scans of a stream, so that a chatty process does not cost a scan for each line.
_SCAN_PAUSE = 0.005
#: Programs write a line in pieces: a matching line may take this long to become complete.
_LINE_TIMEOUT = 0.05
#: The cursor is persisted after this many bytes without a match: the most that is scanned again after a crash.
_CURSOR_STRIDE = 64 << 20
#: The end of a process is published after this time, even if its output is not scanned to the end.
_LAST_SCAN_BUDGET = 20.0
#: The wall clock may be set during a sleep.
_LONGEST_SLEEP = 30.0
_RETRY_PAUSE = 1.0


class OutputWatches:
    def __init__(self, context: DaemonContext, events: MatchEvents) -> None:
        self._context = context
        self._worker = context.watch_worker
        self._worker.on_late = self._publish_delay
        self._events = events
        settings = context.settings
        self._rules = WatchRules(settings.watch_window, settings.watch_strikes, settings.watch_budget)
        self._followed: set[ProcessId] = set()
        #: Up to where each stream was scanned. The cursor on disk may lie before it.
        self._cursors: dict[tuple[ProcessId, str], int] = {}
        self._due: dict[ProcessId, float] = {}
        self._due_changed = asyncio.Event()
        # Set at once: also processes that ended while there was no daemon are scanned to the end.
        context.supervisor.before_end = self.before_end
        context.sessions.on_rename.append(events.renamed)
        context.sessions.on_transfer.append(events.transferred)

    def begin(self) -> None:
        """Watch all processes that run now, as after a crash of the daemon, and every run that begins later."""
        for process in self._context.registry.active():
            self._start(process)
        self._context.registry.listen(self._start, "watch", "watch_regex")
        self._context.background.start(self._watch_clock(), "watch windows")

    def close(self) -> None:
        self._worker.close()

    def _start(self, process: HeldProcess) -> None:
        if _is_watched(process) and process.is_up and process.id not in self._followed:
            self._followed.add(process.id)
            self._note_due(process.id, _state(process))
            self._context.background.start(self._follow(process), "watch")

    async def _follow(self, process: HeldProcess) -> None:
        """Follow all streams until there can be no more output in any run."""
        try:
            await asyncio.gather(*(self._follow_stream(process, stream) for stream in process.meta.streams))
        finally:
            self._followed.discard(process.id)

    async def _follow_stream(self, process: HeldProcess, stream: str) -> None:
        context, process_id = self._context, process.id
        while _is_watched(context.registry.get(process_id)):
            at = self._cursor(process_id, stream)
            run = output.run_of(context, process_id)
            try:
                reach = await context.outputs.beyond(process_id, stream, at)
                if reach.end > at:
                    await self._scan_new(process_id, stream, at, reach.end)
                    await asyncio.sleep(_SCAN_PAUSE)
                elif reach.closed and not await output.opens_again(context, process_id, run):
                    return
            except (HoldfastError, OSError) as failed:  # the keeper or the watch worker is away, or cannot be started
                note("watch-delayed", process=process_id, why=str(failed))
                await asyncio.sleep(_RETRY_PAUSE)

    async def _scan_new(self, process_id: ProcessId, stream: str, at: int, upto: int) -> None:
        process = self._context.registry.get(process_id)
        if process is None or process.has_ended:
            return
        try:
            scan = await self._whole_lines(process, stream, at, upto)
        except WatchBroken as broken:
            await self._break(process_id, broken)
            return
        async with self._context.supervisor.turn(process_id):
            now = self._context.registry.get(process_id)
            if now is not None and not now.has_ended and self._cursor(process_id, stream) == at:
                await self._apply(now, stream, scan)

    async def _scan(self, process: HeldProcess, stream: str, at: int, upto: int, is_final: bool) -> WatchScan:
        meta = process.meta
        scan = await self._worker.scan(process.id, stream, meta.watch, meta.watch_regex, at, upto, is_final)
        return scan._replace(matches=await self._context.secrets.mask_matches(scan.matches, meta.session))

    async def _whole_lines(self, process: HeldProcess, stream: str, at: int, upto: int) -> WatchScan:
        """A scan of new output. A line that matches before it is complete gets a moment to become complete."""
        scan = await self._scan(process, stream, at, upto, is_final=False)
        if scan.is_late:  # so that there is one notification, also of what was written meanwhile
            upto = (await self._context.outputs.beyond(process.id, stream, at)).end
            scan = await self._scan(process, stream, at, upto, is_final=False)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINE_TIMEOUT):
                while scan.matches and scan.matches[-1].end >= scan.upto:
                    reach = await self._context.outputs.beyond(process.id, stream, scan.upto)
                    if reach.end <= scan.upto:
                        break
                    scan = await self._scan(process, stream, at, reach.end, is_final=False)
        return scan

    def _publish_delay(self, pid: int, reason: str) -> None:
        data = {"worker_pid": pid, "reason": reason, "lag": round(self._worker.lag, 3)}
        note("watch-late", **data)
        self._context.background.start(self._write([Event("watch.delayed", time.time(), data)]), "watch delay")

    async def _apply(self, process: HeldProcess, stream: str, scan: WatchScan) -> None:
        """Apply a scan, in the turn of the process. It is on disk when this returns."""
        state, now = _state(process), time.time()
        after, outcomes = watching.matched(state, scan.matches, now, self._rules, scan.more)
        key = (process.id, stream)
        if after is state and scan.upto - state.cursors.get(stream, 0) < _CURSOR_STRIDE:
            self._cursors[key] = scan.upto
            return
        await self._save(process, watching.scanned(after, stream, scan.upto), outcomes, now)
        self._cursors[key] = scan.upto

    async def _save(self, process: HeldProcess, state: WatchState, outcomes: list[WatchOutcome], now: float) -> None:
        process = replace(process, watching=self._with_cursors(process.id, state))
        events = self._events.of_outcomes(process, outcomes, now)
        await self._context.supervisor.commit(process, events, self._remember())
        self._note_due(process.id, state)

    async def _write(self, events: list[Event]) -> None:
        try:
            await self._context.store.change(self._remember(), events)
        except HoldfastError as failed:  # the store tries again until there is space
            note("notice-late", why=failed.message)

    def _remember(self) -> Callable[[rows.Connection], None]:
        remembered = self._events.remembered
        return lambda connection: rows.remember(connection, NAME, remembered)

    async def _break(self, process_id: ProcessId, why: WatchBroken) -> None:
        note("watch-broken", process=process_id, why=why.message)
        async with self._context.supervisor.turn(process_id):
            process = self._context.registry.get(process_id)
            if process is not None and not process.has_ended:
                state, outcomes = watching.broken(_state(process))
                await self._save(process, state, outcomes, time.time())

    # The end of a process.

    async def before_end(self, process: HeldProcess) -> tuple[HeldProcess, list[Event]]:
        """The last events of a watch, published before the end of its process. In the turn of the process."""
        now = time.time()
        state, outcomes = _state(process), list[WatchOutcome]()
        if not state.disabled:
            state, outcomes = await self._last_scans(process, state, now)
        state, more = watching.ended(state, now)
        process = replace(process, watching=state)
        self._due.pop(process.id, None)
        events = self._events.of_outcomes(process, [*outcomes, *more], now)
        return process, [*events, *self._events.at_end(process, now)]

    async def _last_scans(
        self, process: HeldProcess, state: WatchState, now: float
    ) -> tuple[WatchState, list[WatchOutcome]]:
        outcomes: list[WatchOutcome] = []
        for stream, extent in process.streams.items():
            upto = process.exit_offset if stream == "out" and process.exit_offset is not None else extent.end
            at = self._cursors.pop((process.id, stream), state.cursors.get(stream, 0))
            with contextlib.suppress(HoldfastError, TimeoutError):  # then what is there is scanned
                async with asyncio.timeout(_LAST_SCAN_BUDGET):
                    await self._until_written(process.id, stream, extent.end, upto)
            try:
                async with asyncio.timeout(_LAST_SCAN_BUDGET):
                    async for scan in self._scans(process, stream, at, upto):
                        state, found = watching.matched(state, scan.matches, now, self._rules, scan.more)
                        state = watching.scanned(state, stream, scan.upto)
                        outcomes += found
            except (HoldfastError, TimeoutError) as failed:
                note("watch-unfinished", process=process.id, why=repr(failed))
        return state, outcomes

    async def _until_written(self, process_id: ProcessId, stream: str, end: int, upto: int) -> None:
        """Until its output is in the log: on a full disk the rest of it waits in the pipe."""
        is_closed = False
        while end < upto and not is_closed:
            end, is_closed = await self._context.outputs.beyond(process_id, stream, end)

    async def _scans(self, process: HeldProcess, stream: str, at: int, upto: int) -> AsyncIterator[WatchScan]:
        """Scan up to the end of the output."""
        while True:
            try:
                scan = await self._scan(process, stream, at, upto, is_final=True)
            except OSError as failed:  # the worker cannot be started now, as at the limit of open files
                note("watch-delayed", process=process.id, why=str(failed))
                await asyncio.sleep(_RETRY_PAUSE)
                continue
            yield scan
            if scan.complete or scan.upto <= at:
                return
            at = scan.upto

    # Windows of the rules, and the breaker.

    async def _watch_clock(self) -> None:
        """Close windows, and the breaker, when they are due."""
        while True:
            self._due_changed.clear()
            now = time.time()
            if events := self._events.release(now):
                await self._write(events)
            for process_id in [one for one, due in self._due.items() if watching.is_due(due, now, self._rules)]:
                await self._elapse(process_id)
            dues = [*self._due.values(), *([due] if (due := self._events.next_due) is not None else [])]
            seconds = min([_LONGEST_SLEEP, *(max(0.0, due - time.time()) for due in dues)])
            await pause(seconds, unless=self._due_changed)

    async def _elapse(self, process_id: ProcessId) -> None:
        self._due.pop(process_id, None)
        async with self._context.supervisor.turn(process_id):
            process = self._context.registry.get(process_id)
            if process is None or process.has_ended:
                return
            now = time.time()
            state, outcomes = watching.elapsed(_state(process), now, self._rules)
            if outcomes or state != _state(process):
                await self._save(process, state, outcomes, now)
            else:
                self._note_due(process_id, state)

    def _note_due(self, process_id: ProcessId, state: WatchState) -> None:
        due = watching.next_due(state)
        if due is None:
            self._due.pop(process_id, None)
        else:
            self._due[process_id] = due
        self._due_changed.set()

    # Cursors.

    def _cursor(self, process_id: ProcessId, stream: str) -> int:
        known = self._cursors.get((process_id, stream))
        if known is not None:
            return known
        process = self._context.registry.get(process_id)
        return _state(process).cursors.get(stream, 0) if process is not None else 0

    def _with_cursors(self, process_id: ProcessId, state: WatchState) -> WatchState:
        """Output without a match need not be scanned again."""
        newest = {stream: max(at, self._cursors.get((process_id, stream), 0)) for stream, at in state.cursors.items()}
        return replace(state, cursors=newest)


def _state(process: HeldProcess) -> WatchState:
    return process.watching or WatchState()


def _is_watched(process: HeldProcess | None) -> bool:
    """Whether it has patterns, and they are not disabled."""
    if process is None or process.has_ended or not (process.meta.watch or process.meta.watch_regex):
        return False
    return not _state(process).disabled
