"""Every process that the daemon knows, in memory, and how clients see it. Callers that only read wait for no disk."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from typing import Any, TypeVar

from holdfast import light_json
from holdfast.daemon.core.tasks import ChangeSignals
from holdfast.errors import LimitReached, NotNow
from holdfast.model.lifecycle import Queued, Requested, end_signal, exit_code, reason, stop_of
from holdfast.model.notices.watching import WatchState
from holdfast.model.probes import prompts, stalls
from holdfast.model.probes.usage import Track
from holdfast.model.process import HeldProcess, Meta, ProcessId
from holdfast.model.process_rules import identify
from holdfast.places.base import Measures
from holdfast.records import Struct, asdict

T = TypeVar("T")

#: A process as clients see it: exactly the declared fields.
ProcessObject = dict[str, Any]

#: Fields whose values change all the time.
_VOLATILE = frozenset({"cpu_seconds", "rss_bytes", "peak_rss_bytes"})
_MOST_NAMED = 20


class Registry:
    def __init__(self) -> None:
        self._processes: dict[ProcessId, HeldProcess] = {}
        self._living: dict[ProcessId, HeldProcess] = {}
        self._alike: dict[tuple[object, ...], dict[ProcessId, None]] = {}
        self._changes: ChangeSignals[ProcessId] = ChangeSignals()
        #: Each with the options of a start that it is for; none for all processes.
        self._listeners: list[tuple[Callable[[HeldProcess], None], tuple[str, ...]]] = []
        self._interests: dict[ProcessId, list[Callable[[HeldProcess], None]]] = {}
        #: Counted since this daemon started: starts, and ends by reason.
        self.starts = 0
        self.ends: Counter[str] = Counter()

    @property
    def all(self) -> Mapping[ProcessId, HeldProcess]:
        """Also those that are being started."""
        return self._processes

    @property
    def living(self) -> Mapping[ProcessId, HeldProcess]:
        """Those that run or are being started."""
        return self._living

    def active(self) -> list[HeldProcess]:
        return [process for process in self._living.values() if process.is_active]

    def count_started(self) -> int:
        """How many run or are being started, without those that wait for it."""
        return sum(not process.is_queued for process in self._living.values())

    def check_limit(self, at_most: int, sees: Callable[[str], bool] = lambda session: True) -> None:
        """Raises LimitReached when no further one may be started; names those of sessions that the caller sees."""
        if len(self._living) < at_most or (running := self.count_started()) < at_most:
            return
        seen = sorted(id for id, one in self._living.items() if not one.is_queued and sees(one.meta.session))
        more = f" and {len(seen) - _MOST_NAMED} more" if len(seen) > _MOST_NAMED else ""
        raise LimitReached(f"{running} processes run, {at_most} may: {', '.join(seen[:_MOST_NAMED])}{more}")

    def living_of(self, session: str | None, task: str | None = None, every: bool = False) -> list[HeldProcess]:
        """Living processes of this session or of this task; or every one."""
        return [
            process
            for process in self._living.values()
            if every or process.meta.session == session or (task is not None and process.meta.task == task)
        ]

    def shown(self) -> list[HeldProcess]:
        """Those that a caller may see: not those that are being started."""
        return [process for process in self._processes.values() if not isinstance(process.state, Requested)]

    def get(self, process_id: ProcessId) -> HeldProcess | None:
        return self._processes.get(process_id)

    def owner(self, process_id: ProcessId) -> str | None:
        """The session that owns it; None for one that is unknown."""
        process = self._processes.get(process_id)
        return process.meta.session if process is not None else None

    def identify(self, text: str) -> HeldProcess:
        """The process with this id or name, or a unique prefix of one. Raises NotFound, Ambiguous or BadValue."""
        exact = self._processes.get(ProcessId(text))
        if exact is not None and not isinstance(exact.state, Requested):
            return exact
        return identify(text, {process.id: process for process in self.shown()})

    def alike(self, meta: Meta) -> list[HeldProcess]:
        """Other living processes with the same session, command and directory, oldest first."""
        return [self._living[other] for other in self._alike.get(meta.duplicate_key, ()) if other != meta.id]

    def check_name(self, meta: Meta, everywhere: bool) -> None:
        """Raises NotNow when another living process of the session, or of any, has the name."""
        if meta.name is None:
            return
        for other in self.living.values():
            if other.meta.name == meta.name and other.id != meta.id:
                if other.meta.session != meta.session:
                    if not everywhere:
                        continue
                    raise NotNow(f"the name {meta.name} is taken", next="choose another name")
                raise NotNow(f"{other.id} has the name {meta.name}", next=f"holdfast inspect {meta.name}")

    def put(self, process: HeldProcess) -> None:
        """Replace the process. Tasks that watch it are woken."""
        process_id, has_ended = process.meta.id, process.has_ended
        before = self._processes.get(process_id)
        if before is not None and before.meta.session != process.meta.session:
            self._end_life(process_id)  # the session is part of its key
        self._processes[process_id] = process
        if before is not None and before.state is not process.state and not before.has_ended:
            self._count(before, process)
        if has_ended:
            self._end_life(process_id)
        else:
            if process_id not in self._living:
                self._alike.setdefault(process.meta.duplicate_key, {})[process_id] = None
            self._living[process_id] = process
        self._changes.send(process_id)
        for listener in self._interests.get(process_id) or self._interested(process):
            listener(process)
        if has_ended:
            self._interests.pop(process_id, None)

    def listen(self, listener: Callable[[HeldProcess], None], *options: str) -> None:
        """Have it called with every process that is put from now on. It must not wait, nor put anything itself.

        With `options` only with processes that were started with one of them: others cost nothing.
        """
        self._listeners.append((listener, options))
        self._interests.clear()

    def _interested(self, process: HeldProcess) -> list[Callable[[HeldProcess], None]]:
        """The listeners for a process. Its options stay the same, so they are looked up once."""
        found = self._interests[process.id] = [
            listener
            for listener, options in self._listeners
            if not options or any(_is_given(getattr(process.meta, option)) for option in options)
        ]
        return found

    def _count(self, before: HeldProcess, now: HeldProcess) -> None:
        if isinstance(before.state, (Requested, Queued)):
            self.starts += now.is_up
        if now.has_ended:
            self.ends[reason(now.state) or "unknown"] += 1

    def drop(self, process_id: ProcessId) -> None:
        self._processes.pop(process_id, None)
        self._interests.pop(process_id, None)
        self._end_life(process_id)
        self._changes.send(process_id)

    def _end_life(self, process_id: ProcessId) -> None:
        process = self._living.pop(process_id, None)
        if process is not None:
            key = process.meta.duplicate_key
            self._alike[key].pop(process_id, None)
            if not self._alike[key]:
                del self._alike[key]

    def watching(self, ids: Collection[ProcessId]) -> AbstractContextManager[asyncio.Event]:
        """An event that is set at every change of one of them."""
        return self._changes.listening(*ids)

    async def until(self, ids: Collection[ProcessId], reached: Callable[[], T | None]) -> T:
        """The first true value of `reached`, which is called now and at every change of one of these processes."""
        with self.watching(ids) as changed:
            while not (value := reached()):
                await changed.wait()
                changed.clear()
            return value

    async def wait_ended(self, process_id: ProcessId) -> HeldProcess | None:
        """The process once it has ended; None when it is removed meanwhile."""
        await self.until([process_id], lambda: (now := self.get(process_id)) is None or now.has_ended)
        return self.get(process_id)

    async def wait_run_over(self, process_id: ProcessId, run: int) -> HeldProcess | None:
        """The process once this run of it is over; None when it is removed meanwhile."""

        def is_over() -> bool:
            now = self.get(process_id)
            return now is None or now.run > run or now.has_ended or now.is_restarting

        await self.until([process_id], is_over)
        return self.get(process_id)


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != ()


class AttachedClient(Struct, frozen=True):
    by: str
    since: float


class ProcessClients:
    """Which clients' terminals show a process now. They attach again after a start of the daemon."""

    def __init__(self) -> None:
        self._attached: dict[ProcessId, list[AttachedClient]] = {}

    @contextmanager
    def attached(self, process_id: ProcessId, by: str) -> Iterator[None]:
        """While the terminal of this caller shows the process."""
        client = AttachedClient(by, time.time())
        clients = self._attached.setdefault(process_id, [])
        clients.append(client)
        try:
            yield
        finally:
            clients.remove(client)
            if not clients and self._attached.get(process_id) is clients:
                del self._attached[process_id]

    def attached_to(self, process_id: ProcessId) -> list[dict[str, Any]]:
        """The field `attached` of the process object."""
        return [asdict(client) for client in self._attached.get(process_id, ())]


def process_object(
    process: HeldProcess,
    now: float,
    stale_after: float,
    reachable: bool = True,
    measures: Measures | None = None,
    used: Track | None = None,
) -> ProcessObject:
    meta, state = process.meta, process.state
    streams = (measures.streams if measures is not None else process.streams).values()
    stop, has_ended = stop_of(state), process.has_ended
    ready = process.readiness_now if process.readiness is not None else None
    stall = stalls.mark_of(process) if process.stall is not None else None
    need = prompts.mark_of(process) if process.need is not None else None
    started_at, ready_by = process.started_at, meta.readiness_kind
    return {
        "id": meta.id,
        "name": meta.name,
        "command": meta.command,
        "argv": list(meta.argv),
        "cwd": meta.cwd,
        "session": meta.session,
        "task": meta.task,
        "backend": meta.backend,
        "pid": process.pid,
        "status": status_of(process, reachable),
        "reason": reason(state),
        "exit_code": exit_code(state),
        "signal": end_signal(state),
        "started_at": started_at,
        "ended_at": process.ended_at,
        "ready": process.is_ready if ready_by is not None else None,
        "output_bytes": sum([stream.end for stream in streams]),
        "dropped_bytes": sum([stream.first for stream in streams]),
        "log_cap": meta.log_cap,
        "lifetime": meta.lifetime,
        "notify": process.notify,
        "watch": [*meta.watch, *meta.watch_regex],
        "pty": meta.pty,
        "stdin_open": process.stdin_open and not has_ended,
        "deadline_at": process.deadline_at,
        "leftover_pids": measures.leftover_pids if measures is not None else [],
        "restarts": process.run,
        "ports": used.ports if used is not None else [] if has_ended else None,
        "cpu_seconds": used.cpu_seconds if used is not None else process.cpu_seconds,
        "rss_bytes": used.rss_bytes if used is not None else None,
        "labels": dict(meta.labels),
        "killed_by": stop.by if stop is not None else None,
        "forced": stop.forced if stop is not None else None,
        "exit_offset": process.exit_offset,
        "stale": not has_ended and started_at is not None and now - started_at > stale_after and process.is_active,
        "trouble": process.trouble,
        "ready_at": ready.at if ready is not None else None,
        "ready_trouble": ready.trouble if ready is not None else None,
        "stalled": stall is not None,
        "stall_data": stalls.stall_object(stall) if stall is not None else None,
        "needs_input": prompts.need_object(need) if need is not None else None,
        "watch_data": _watch(process) if meta.watch or meta.watch_regex else None,
        "split": meta.split,
        "cols": process.cols,
        "rows": process.rows,
        "restart": meta.restart,
        "restart_at": process.restart_at,
        "gave_up": process.gave_up,
        "queue": meta.queue,
        "after": [*meta.after, *meta.after_success],
        "on_boot": meta.on_boot,
        "sandbox": _sandbox(meta) if meta.sandbox else None,
        "started_by_boot": process.boot_run == process.run and process.run > 0,
        "limits": meta.limits or None,
        "peak_rss_bytes": used.peak_rss_bytes if used is not None else process.peak_rss,
        "created_at": meta.requested_at,
        "ready_by": ready_by,
        "place": meta.place,
        "typed": asdict(process.typed) if process.typed is not None else None,
    }


def _sandbox(meta: Meta) -> dict[str, Any]:
    return {"writable": list(meta.writable), "network": meta.network or "none"}


def _watch(process: HeldProcess) -> dict[str, Any]:
    state = process.watching or WatchState()
    return {
        "disabled": state.disabled,
        "matches": state.matches,
        "suppressed": state.suppressed,
        "told": state.notified,
    }


def status_of(process: HeldProcess, reachable: bool) -> str:
    if process.has_ended:
        return "ended"
    if process.is_queued:
        return "waiting"
    if not reachable:
        return "unreachable"
    return "restarting" if process.is_restarting else "running"


def state_token(shown: Mapping[str, Any]) -> str:
    """Identifies the state that was shown. It is the same after a restart of the daemon."""
    lasting = [(key, value) for key, value in sorted(shown.items()) if key not in _VOLATILE]
    return blake2b(light_json.dump_bytes(lasting), digest_size=8).hexdigest()
