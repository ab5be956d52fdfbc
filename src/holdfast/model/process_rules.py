"""Rules about processes: duplicates, lifetimes, deadlines, restarts, removal, and identifying one by a text.

No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NoReturn, TypeAlias

from holdfast.errors import AlreadyRunning, Ambiguous, BadValue, NotFound
from holdfast.model.lifecycle import Ended, Exited, Lost, NeverRan, Restarting, Running, Skipped, stop_of
from holdfast.model.process import HeldProcess, Meta, ProcessId, id_prefix, is_id, is_name
from holdfast.records import Struct

IfRunning: TypeAlias = Literal["allow", "reuse", "replace", "error"]

_MOST_DUPLICATES = 5


def refuse_duplicate(duplicates: Sequence[HeldProcess]) -> NoReturn:
    """Raises AlreadyRunning with their ids."""
    has = "already has this command waiting" if _all_wait(duplicates) else "already runs this command"
    raise AlreadyRunning(f"this session {has} in this directory: {_ids_of(duplicates)}")


def duplicate_note(duplicates: Sequence[HeldProcess]) -> str:
    state = "waits to be started" if _all_wait(duplicates) else "runs"
    return f"the same command already {state} in this directory: {_ids_of(duplicates)}"


def _all_wait(duplicates: Sequence[HeldProcess]) -> bool:
    return all(process.is_queued for process in duplicates)


def _ids_of(processes: Sequence[HeldProcess]) -> str:
    named = ", ".join(process.id for process in processes[:_MOST_DUPLICATES])
    more = len(processes) - _MOST_DUPLICATES
    return f"{named} and {more} more" if more > 0 else named


def end_with_session(processes: Iterable[HeldProcess], session: str) -> tuple[list[HeldProcess], list[HeldProcess]]:
    """Of the session's running processes: those that end with it, and those that go on."""
    own = [process for process in processes if process.is_active and process.meta.session == session]
    return _by_lifetime(own, "session")


def parent_of(processes: Iterable[HeldProcess], session: str) -> str | None:
    """The parent of this session, as given with its newest process that has one."""
    named = [
        (process.meta.requested_at, process.meta.parent_session)
        for process in processes
        if process.meta.session == session and process.meta.parent_session not in (None, session)
    ]
    return max(named, key=lambda one: one[0])[1] if named else None


def end_with_daemon(processes: Iterable[HeldProcess]) -> tuple[list[HeldProcess], list[HeldProcess]]:
    """Of all running processes: those that end when holdfast is stopped on purpose, and those that go on."""
    return _by_lifetime([process for process in processes if process.is_active], "daemon")


def _by_lifetime(processes: list[HeldProcess], lifetime: str) -> tuple[list[HeldProcess], list[HeldProcess]]:
    ending = [process for process in processes if process.meta.lifetime == lifetime]
    left = [process for process in processes if process.meta.lifetime != lifetime]
    return ending, left


def deadline_due_at(process: HeldProcess) -> float | None:
    """When its deadline is due; None when it has none, or when it was acted upon."""
    if not isinstance(process.state, Running) or process.deadline_notified:
        return None
    return process.deadline_at


def deadlines_due(processes: Iterable[HeldProcess], now: float) -> list[HeldProcess]:
    """Those whose deadline has passed and has not been acted upon."""
    return [process for process in processes if (at := deadline_due_at(process)) is not None and at <= now]


def next_deadline(processes: Iterable[HeldProcess]) -> float | None:
    """When the next deadline is due; None when there is none."""
    return min((at for process in processes if (at := deadline_due_at(process)) is not None), default=None)


#: No pause is longer, unless `restart_delay` is.
LONGEST_RESTART_PAUSE = 60.0
#: A run that lasted for this long, and for longer than the pause before it, resets the count of restarts in a row.
STABLE_AFTER = 10.0
_FIRST_DISK_PAUSE = 0.25
_LONGEST_DISK_PAUSE = 10.0


class RestartVerdict(Struct, frozen=True):
    """The decision after an end."""

    due: float | None = None
    """When it is restarted; None for never."""
    streak: int = 0
    """Which restart in a row that is, or would have been."""
    gave_up: bool = False
    """Whether it is not restarted only because the limit was reached."""


def after_end(meta: Meta, ended: Ended, streak: int) -> RestartVerdict:
    """After a run that was the `streak`th restart in a row. A process that was ended by request is not restarted."""
    if ended.stop is not None:
        return RestartVerdict(ended.known_at) if ended.stop.reason == "restart" else RestartVerdict()
    if not _should_restart(meta, ended):
        return RestartVerdict()
    return _restart_after(meta, 0 if _was_stable(meta, ended, streak) else streak, ended.known_at)


def after_failed_launch(meta: Meta, streak: int, now: float) -> RestartVerdict:
    """After the `streak`th restart in a row could not be started. A restart by request is not repeated."""
    return RestartVerdict() if meta.restart == "never" else _restart_after(meta, streak, now)


def after_refused_by_disk(ended_at: float, now: float) -> float:
    """When it is tried again after the disk could not be written: the pauses double, without a count of attempts."""
    return now + min(max(now - ended_at, _FIRST_DISK_PAUSE), _LONGEST_DISK_PAUSE)


def restart_pause(meta: Meta, streak: int) -> float:
    """Seconds to wait after `streak` restarts in a row."""
    return float(min(meta.restart_delay * 2 ** min(streak, 64), max(LONGEST_RESTART_PAUSE, meta.restart_delay)))


def restarts_due(processes: Iterable[HeldProcess], now: float) -> list[HeldProcess]:
    """Processes whose restart is due."""
    return [process for process in processes if isinstance(process.state, Restarting) and process.state.due <= now]


def next_restart(processes: Iterable[HeldProcess]) -> float | None:
    """When the next restart is due; None when there is none."""
    return min((process.state.due for process in processes if isinstance(process.state, Restarting)), default=None)


def may_run_again(process: HeldProcess) -> bool:
    """Whether there may be a further run, and so further output."""
    if process.has_ended:
        return False
    return process.is_restarting or process.meta.restart != "never" or _restart_requested(process)


def _restart_requested(process: HeldProcess) -> bool:
    stop = getattr(process.state, "stop", None)
    return stop is not None and stop.reason == "restart"


def _should_restart(meta: Meta, ended: Ended) -> bool:
    if isinstance(ended.outcome, (Lost, NeverRan, Skipped)):
        return False
    return meta.restart == "always" or (meta.restart == "on-failure" and not _succeeded(meta, ended))


def _succeeded(meta: Meta, ended: Ended) -> bool:
    return isinstance(ended.outcome, Exited) and ended.outcome.code in meta.success_codes


def _was_stable(meta: Meta, ended: Ended, streak: int) -> bool:
    began = ended.started_at
    lasted = ended.known_at - began if began is not None else 0.0
    return lasted >= max(STABLE_AFTER, restart_pause(meta, streak - 1) if streak else 0.0)


def _restart_after(meta: Meta, streak: int, at: float) -> RestartVerdict:
    if meta.restart_limit and streak >= meta.restart_limit:
        return RestartVerdict(None, streak, gave_up=True)
    return RestartVerdict(at + restart_pause(meta, streak), streak + 1)


def may_be_forgotten(
    processes: Iterable[HeldProcess], now: float, keep: float, at_most: int, floor: float
) -> list[ProcessId]:
    """Ended for longer than `keep`, or beyond the `at_most` newest; never one that ended less than `floor` seconds ago.

    A process whose descendants still write is not finished, however long ago it ended. One that comes back at the next
    boot is kept.
    """
    finished = [process for process in processes if process.output_closed and not _comes_back(process)]
    ended = sorted(((_ended_at(process), process.id) for process in finished), reverse=True)
    return [
        process_id
        for place, (at, process_id) in enumerate(ended)
        if now - at >= floor and (place >= at_most or now - at >= keep)
    ]


def _ended_at(process: HeldProcess) -> float:
    assert isinstance(process.state, Ended)
    return process.state.known_at


def come_back_at_boot(processes: Iterable[HeldProcess]) -> list[HeldProcess]:
    """Those that are run again when the machine has been booted; of several with one name, the newest."""
    found = [process for process in processes if _comes_back(process)]
    newest = {(process.meta.session, process.meta.name): process for process in sorted(found, key=_precedence)}
    return [process for process in found if process.meta.name is None or process in newest.values()]


def _comes_back(process: HeldProcess) -> bool:
    """One that was ended on purpose, by `kill` or with its session, does not."""
    if not process.meta.on_boot or not (process.has_ended or process.is_restarting):
        return False
    stop = stop_of(process.state)
    return stop is None or stop.reason not in ("killed", "session_end")


_MOST_AMBIGUOUS = 5
#: Names that are compared with an unknown one.
_MOST_COMPARED = 500


def identify(text: str, processes: Mapping[ProcessId, HeldProcess]) -> HeldProcess:
    """The process with this id or name, or the only one whose id or name begins so.

    A name identifies the process that runs under it, else the last one that did. Raises BadValue for a text that is
    none of these, NotFound when there is no such process, Ambiguous when several ids or names begin so, or when
    processes of several sessions run under the name.
    """
    exact = processes.get(ProcessId(text))
    if exact is not None:
        return exact
    prefix = id_prefix(text)
    if not is_id(text) and prefix is None and not is_name(text):
        raise BadValue(f"{text[:80]!r} is not an id, a name or the beginning of one", next="holdfast ps -a")
    found = _by_name(text, processes.values()) or _by_prefix(text, prefix, processes)
    if found is None:
        raise NotFound(f"no process {text}{_similar(text, processes.values())}")
    return found


def _similar(name: str, processes: Iterable[HeldProcess]) -> str:
    """The running processes with the nearest names."""
    import difflib

    running = {process.meta.name for process in processes if process.meta.name and not process.has_ended}
    near = difflib.get_close_matches(name, sorted(running)[:_MOST_COMPARED], 3)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _by_name(name: str, processes: Iterable[HeldProcess]) -> HeldProcess | None:
    named = [process for process in processes if process.meta.name == name]
    living = sorted(process.id for process in named if not process.has_ended)
    if len(living) > 1:
        some = ", ".join(living[:_MOST_AMBIGUOUS])
        raise Ambiguous(f"{len(living)} processes run under the name {name}: {some}")
    return max(named, key=_precedence, default=None)


def _precedence(process: HeldProcess) -> tuple[bool, float]:
    """Of several processes with one name, that with the highest is meant."""
    return not process.has_ended, process.meta.requested_at


def _by_prefix(text: str, prefix: str | None, processes: Mapping[ProcessId, HeldProcess]) -> HeldProcess | None:
    found = {one: process for one, process in processes.items() if prefix is not None and one.startswith(prefix)}
    begun = [process for process in processes.values() if (process.meta.name or "").startswith(text)]
    named = {process.meta.name: process for process in sorted(begun, key=_precedence)}
    found.update((process.id, process) for process in named.values())
    if len(found) > 1:
        some = [f"{one} ({name})" if (name := found[one].meta.name) else one for one in sorted(found)]
        raise Ambiguous(f"{text} may be any of {len(found)} processes: {', '.join(some[:_MOST_AMBIGUOUS])}")
    return next(iter(found.values()), None)
