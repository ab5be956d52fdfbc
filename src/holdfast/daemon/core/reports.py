"""Reads a report of the keeper: its facts, and the process that follows from them. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from holdfast.model import process_rules
from holdfast.model.lifecycle import (
    ChildEnded,
    ChildStarted,
    Ended,
    Exited,
    Fact,
    ForceUsed,
    Requested,
    RestartPlanned,
    Signaled,
    State,
    Status,
    StopAsked,
    Unseen,
    advance,
)
from holdfast.model.process import HeldProcess, Leftover, StreamExtent
from holdfast.model.process_rules import RestartVerdict

Report = dict[str, Any]

#: Bytes for a session's name in the record of a stop. Only names that are not ASCII can be longer.
_LONGEST_ASKER = 700
_LONGEST_ESCAPE = 12


def facts(report: Report) -> Iterator[Fact]:
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
    for fact in facts(report):
        state = advance(state, fact)
    end = report["exit"] or {}
    stdin = report["stdin"]
    run, streak = run_of(report), int(report["born"].get("streak", 0))
    verdict = RestartVerdict(streak=streak)
    if isinstance(state, Ended):
        verdict = process_rules.after_end(process.meta, state, streak)
        state = _planned(state, verdict, report["stop"])
    return replace(
        process,
        state=state,
        run=run,
        streak=verdict.streak,
        gave_up=verdict.gave_up,
        deadline_notified=process.deadline_notified and run == process.run,
        streams=streams(report),
        exit_offset=end.get("ends", {}).get("out"),
        leftovers=tuple(Leftover(pid, start) for pid, start in end.get("leftovers", ())),
        stdin_open=not end and stdin is not None and stdin["open"],
        trouble=report.get("trouble"),
        cpu_seconds=end.get("cpu", process.cpu_seconds),
        peak_rss=end.get("peak") or process.peak_rss,
        group=report["born"].get("group"),
        memory_group=report["born"].get("limits", {}).get("memory"),
    )


def run_of(report: Report) -> int:
    """The number of the run that the report describes; the first is 0."""
    return int(report["born"].get("run", 0))


def was_stopped_late(report: Report) -> bool:
    """Whether its end was requested when its last run was over."""
    return bool((report["stop"] or {}).get("late"))


def _planned(state: Ended, verdict: RestartVerdict, stop: dict[str, Any] | None) -> State:
    if verdict.due is None:
        return state
    waiting = advance(state, RestartPlanned(verdict.due))
    return advance(waiting, _stop_asked(stop)) if stop is not None and stop.get("late") else waiting


def _stop_asked(stop: dict[str, Any]) -> StopAsked:
    return StopAsked(stop["by"] or None, stop["reason"], stop["at"])


def streams(report: Report) -> dict[str, StreamExtent]:
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
