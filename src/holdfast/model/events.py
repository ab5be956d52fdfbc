"""Events; notices, which are notifications for the session that owns a process; and those of each change. No I/O."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from holdfast.model.lifecycle import Restarting, end_signal, exit_code, reason, stop_of
from holdfast.model.probes.prompts import InputNeed
from holdfast.model.probes.readiness import Readiness
from holdfast.model.probes.stalls import Stall
from holdfast.model.process import HeldProcess, Meta, ProcessId
from holdfast.records import Struct, field, replace

Kind: TypeAlias = Literal[
    "completion",
    "watch_match",
    "watch_disabled",
    "watch_overflow_tripped",
    "watch_overflow_released",
    "progress",
    "ready",
    "stalled",
    "deadline",
    "input_needed",
    "approval",
]
"""`approval` asks an approver: it goes to sinks, and into no inbox."""


class BridgeOrigin(NamedTuple):
    """The bridge that an event came over, and its number there. Both together identify the event."""

    bridge: str
    n: int


class Receipt:
    """Gives the publisher the sequence number of its event, once the event is on disk."""

    __slots__ = ("seq",)

    def __init__(self) -> None:
        self.seq = 0


class Event(Struct, frozen=True):
    """An event before it has a sequence number."""

    topic: str
    at: float
    fields: dict[str, Any]
    origin: BridgeOrigin | None = None
    receipt: Receipt | None = None
    notice: Notice | None = None
    """The notice that is stored with it. When that notice is stored already, neither is written again."""

    def envelope(self) -> dict[str, Any]:
        return {"type": self.topic, "ts": self.at, "src": self.topic.partition(".")[0], **self.fields}


class StoredEvent(Struct, frozen=True):
    """An event with its sequence number. Later events have greater numbers."""

    seq: int
    envelope: dict[str, Any]
    notice: Notice | None = None


class Notice(Struct, frozen=True):
    """A notification for one session. The same fact has the same key, also after any restart."""

    key: str
    kind: Kind
    process: ProcessId | None
    session: str
    at: float
    origin: dict[str, Any] | None = None
    data: dict[str, Any] = field(default_factory=dict)
    claim: str | None = None
    """The call that is about to return it as its answer."""

    @property
    def id(self) -> str:
        return id_of(self.key)

    def to_json(self) -> dict[str, Any]:
        """The fields of the notification object that are stored."""
        names = ("id", "key", "kind", "process", "session", "origin", "at", "data")
        return {name: getattr(self, name) for name in names}


@lru_cache(1024)
def id_of(key: str) -> str:
    """The id of the notice with this key."""
    return f"note_{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def ready_key(process_id: ProcessId, run: int) -> str:
    return f"{process_id}:ready:{run}"


def completion_key(process_id: ProcessId, run: int) -> str:
    return f"{process_id}:completion:{run}"


def of_process(process: HeldProcess, kind: Kind, key: str, at: float, data: dict[str, Any]) -> Notice:
    """A notice about a process, for the session that owns it."""
    meta = process.meta
    data = {**data, "command": meta.command, "name": meta.name}
    return Notice(f"{meta.id}:{key}", kind, meta.id, meta.session, at, meta.origin, data)


def completion(process: HeldProcess, now: float) -> Notice | None:
    """The notice of its end, if `notify` includes it and the owner did not request it. Output is added on delivery."""
    state, meta, notify = process.state, process.meta, process.notify
    stop = stop_of(state)
    if stop is not None and stop.by is not None and stop.by == meta.session:
        return None
    if stop is not None and stop.reason == "session_end":
        return None  # its owner has ended, and the caller that ended it has the answer
    code, why = exit_code(state), reason(state)
    is_success = _is_success(why, code, meta)
    if notify == "never" or (notify != "any" and (notify == "success") != is_success):
        return None
    data = {
        "exit_code": code,
        "signal": end_signal(state),
        "reason": why,
        "output_bytes": sum([stream.end for stream in process.streams.values()]),
        "started_at": process.started_at,
        "ended_at": process.ended_at,
        "run": process.run,
        "killed_by": stop.by if stop is not None else None,
        "gave_up": process.gave_up,
        "leftover_pids": [leftover.pid for leftover in process.leftovers],
        "succeeded": is_success,
        "suppressed": 0,
    }
    return of_process(process, "completion", f"completion:{process.run}", process.ended_at or now, data)


def stall_notice(process: HeldProcess, stall: Stall, now: float) -> Notice:
    """One for each episode."""
    data = {"since": stall.since, "last_output_at": stall.last_output_at, "wait": stall.wait}
    return of_process(process, "stalled", f"stalled:{int(stall.since * 1000)}", now, data)


def input_notice(process: HeldProcess, need: InputNeed, now: float) -> Notice:
    """One for each question."""
    data = {"since": need.since, "prompt": need.prompt, "secret": need.secret}
    return of_process(process, "input_needed", f"input_needed:{process.run}:{need.at}", now, data)


def succeeded(process: HeldProcess) -> bool:
    """Whether it ended by itself with a code that counts as success."""
    return _is_success(reason(process.state), exit_code(process.state), process.meta)


def _is_success(why: str | None, code: int | None, meta: Meta) -> bool:
    return why == "exited" and code in meta.success_codes


def of_change(before: HeldProcess | None, after: HeldProcess, now: float, claimed: Notice | None = None) -> list[Event]:
    """The events of one change, in order. A change that was recorded before has none.

    `claimed`: the notice of an end, where it was made before.
    """
    events: list[Event] = []
    if after.started_at is not None and not _is_run_of(before, after):
        events.append(_started(after))
    if after.is_up and (mark := after.readiness_now) is not None and _settled(before, after) != mark.ready:
        events.append(_readiness(after, mark, now))
        if mark.ready:
            took = (mark.at or now) - (after.started_at or now)
            events += queued(of_process(after, "ready", f"ready:{after.run}", now, {"took": took}))
    events += _over(before, after, now)
    if after.is_up and (stall := after.stall) is not None and (before is None or before.stall is None):
        events.append(_stalled(after, stall, now))
        events += queued(stall_notice(after, stall, now))
    if after.is_up and (need := after.need) is not None and (before is None or _is_new(need, before.need)):
        events.append(_input_needed(after, need, now))
        events += queued(input_notice(after, need, now))
    if after.deadline_notified and not (before is not None and before.deadline_notified and _is_run_of(before, after)):
        events.append(
            Event("process.deadline", now, {**_who(after), "run": after.run, "deadline_at": after.deadline_at})
        )
        at = {"deadline_at": after.deadline_at}
        events += queued(of_process(after, "deadline", f"deadline:{after.run}", now, at))
    if after.is_restarting and not (before is not None and before.is_restarting and _is_run_of(before, after)):
        events.append(_restarting(after, now))
    if after.is_queued and not (before is not None and before.is_queued):
        events.append(_queued(after))
    if after.has_ended and not (before is not None and before.has_ended and before.run == after.run):
        events.append(_ended(after, now))
        events += queued(claimed or completion(after, now))
    return events


def recovered(process: HeldProcess, by: str, now: float) -> Event:
    """A new daemon or a new keeper took over a running process."""
    return Event("process.recovered", now, {**_who(process), "pid": process.pid, "run": process.run, "by": by})


def removed(process: HeldProcess, by: str | None, now: float) -> Event:
    """Its record and its log are gone. `by`: the caller that asked for it; None where its time was over."""
    return Event("process.removed", now, {**_who(process), "by": by})


def output_sample(process: HeldProcess, streams: dict[str, dict[str, int]]) -> dict[str, Any]:
    """The fields of `process.output`: for each stream that grew, from where to where; no content."""
    new_bytes = sum(grown["end"] - grown["offset"] for grown in streams.values())
    return {**_who(process), "run": process.run, "streams": streams, "new_bytes": new_bytes}


def queued(notice: Notice | None) -> list[Event]:
    """The event of a notice, with the notice to store."""
    if notice is None:
        return []
    return [replace(of_notice("queued", notice, notice.at), notice=notice)]


def of_notice(what: str, notice: Notice, at: float, **more: str) -> Event:
    """The event that a notice was queued, delivered or acked."""
    fields = {"id": notice.id, "key": notice.key, "kind": notice.kind}
    who = {"process": notice.process, "session": notice.session}
    return Event(f"notification.{what}", at, {**fields, **who, **more})


def _is_run_of(before: HeldProcess | None, after: HeldProcess) -> bool:
    """Whether the run of `after` was known before."""
    return before is not None and before.started_at is not None and before.run == after.run


def _settled(before: HeldProcess | None, after: HeldProcess) -> bool | None:
    """The readiness of this run as it was known before."""
    mark = before.readiness_now if before is not None and _is_run_of(before, after) else None
    return mark.ready if mark is not None else None


def _started(process: HeldProcess) -> Event:
    meta = process.meta
    fields = {"command": meta.command, "cwd": meta.cwd, "pid": process.pid, "pty": meta.pty}
    more: dict[str, Any] = {"lifetime": meta.lifetime, "run": process.run}
    if process.run and process.boot_run == process.run:
        more["boot"] = True
    return Event("process.started", process.started_at or meta.requested_at, {**_who(process), **fields, **more})


def _queued(process: HeldProcess) -> Event:
    meta = process.meta
    waits = {"queue": meta.queue, "after": [*meta.after, *meta.after_success]}
    return Event("process.queued", meta.requested_at, {**_who(process), "command": meta.command, **waits})


def _readiness(process: HeldProcess, mark: Readiness, now: float) -> Event:
    if mark.ready:
        return Event("process.ready", mark.at or now, {**_who(process), "run": process.run})
    return Event("process.not_ready", now, {**_who(process), "run": process.run, "why": mark.trouble})


def _stalled(process: HeldProcess, stall: Stall, now: float) -> Event:
    fields = {"since": stall.since, "last_output_at": stall.last_output_at, "wait": stall.wait}
    return Event("process.stalled", now, {**_who(process), "run": process.run, **fields})


def _over(before: HeldProcess | None, after: HeldProcess, now: float) -> list[Event]:
    """The events of what this run was marked with before and is not any more."""
    if before is None or not after.is_up or not _is_run_of(before, after):
        return []
    over: list[Event] = []
    if (stall := before.stall) is not None and after.stall is None and stall.run == after.started_at:
        over.append(Event("process.stall_over", now, {**_who(after), "run": after.run, "since": stall.since}))
    need = before.need
    if need is not None and need.run == after.started_at and (after.need is None or _is_new(after.need, need)):
        over.append(Event("process.input_over", now, {**_who(after), "run": after.run, "since": need.since}))
    return over


def _is_new(need: InputNeed, before: InputNeed | None) -> bool:
    return before is None or (need.run, need.at) != (before.run, before.at)


def _input_needed(process: HeldProcess, need: InputNeed, now: float) -> Event:
    fields = {"since": need.since, "prompt": need.prompt, "secret": need.secret}
    return Event("process.input_needed", now, {**_who(process), "run": process.run, **fields})


def _restarting(process: HeldProcess, now: float) -> Event:
    assert isinstance(process.state, Restarting)
    last = process.state.last
    fields = {"reason": reason(last), "exit_code": exit_code(last), "signal": end_signal(last)}
    more = {"run": process.run, "restart_at": process.restart_at}
    return Event("process.restarting", last.ended_at or now, {**_who(process), **fields, **more})


def _ended(process: HeldProcess, now: float) -> Event:
    state = process.state
    stop = stop_of(state)
    fields = {
        "reason": reason(state),
        "exit_code": exit_code(state),
        "signal": end_signal(state),
        "started_at": process.started_at,
        "killed_by": stop.by if stop is not None else None,
        "forced": stop.forced if stop is not None else None,
        "output_bytes": sum(stream.end for stream in process.streams.values()),
        "leftover_pids": [leftover.pid for leftover in process.leftovers],
        "run": process.run,
        "gave_up": process.gave_up,
    }
    return Event("process.ended", process.ended_at or now, {**_who(process), **fields})


def _who(process: HeldProcess) -> dict[str, Any]:
    meta = process.meta
    return {"id": meta.id, "name": meta.name, "session": meta.session, "task": meta.task}
