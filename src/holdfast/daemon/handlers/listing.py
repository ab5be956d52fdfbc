"""list, inspect, top, glance: process objects, and the resources that processes use."""

from __future__ import annotations

import asyncio
import math
import shlex
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.registry import state_token, status_of
from holdfast.daemon.streams.tails import last_line
from holdfast.errors import BadValue, Unreachable
from holdfast.model import events
from holdfast.model.lifecycle import Ended, reason
from holdfast.model.probes import prompts, stalls
from holdfast.model.probes.usage import Track
from holdfast.model.process import HeldProcess, ProcessId, is_id
from holdfast.ops.declare import Required
from holdfast.ops.processes import Counts, Glance, Inspect, List, Top
from holdfast.ops.start import Start
from holdfast.places.keeper_link import Refused
from holdfast.secrets.environment import secret_names

_KEEPER_TIMEOUT = 1.0
#: How old the figures of resource usage may be, in seconds.
_LIST_USAGE_AGE, _INSPECT_USAGE_AGE = 1.0, 0.1
#: Seconds for which a failed process counts as one that needs attention.
_LATELY = 1800.0

_SORT_KEYS: dict[str, Callable[[Track], float]] = {
    "cpu": lambda track: -(track.cpu_percent or 0.0),
    "memory": lambda track: -(track.rss_bytes or 0),
    "started": lambda track: 0.0,
}


async def list_processes(context: DaemonContext, call: Call, ask: List) -> Message:
    """A page of process objects, the oldest first, and the cursor of the next page if there is one."""
    found = context.registry.shown() if ask.all else context.registry.active()
    chosen = sorted(_chosen(context, ask, found), key=_position)
    page, cursor = _page(chosen, ask.limit, ask.after)
    return {"processes": await context.show_fresh(page, used=_LIST_USAGE_AGE if ask.used else None), "next": cursor}


async def counts(context: DaemonContext, call: Call, ask: Counts) -> Message:
    """Counted from memory: for a prompt of a shell, which asks often."""
    chosen, now = _chosen(context, ask, context.registry.shown()), time.time()
    running = [process for process in chosen if process.is_active]
    return {
        "running": sum(not process.is_queued for process in running),
        "waiting": sum(process.is_queued for process in running),
        "asking": sum(prompts.mark_of(process) is not None for process in running),
        "stalled": sum(stalls.mark_of(process) is not None for process in running),
        "failed": sum(_failed_lately(process, now) for process in chosen),
    }


def _failed_lately(process: HeldProcess, now: float) -> bool:
    if not isinstance(process.state, Ended) or now - process.state.known_at > _LATELY:
        return False
    return not events.succeeded(process) and reason(process.state) != "killed"


def _chosen(context: DaemonContext, ask: List | Top | Counts, processes: Iterable[HeldProcess]) -> list[HeldProcess]:
    session, task = context.current_name(ask.session), ask.task
    return [
        process
        for process in processes
        if (session is None or process.meta.session == session) and (task is None or process.meta.task == task)
    ]


def _position(process: HeldProcess) -> tuple[float, str]:
    return process.meta.requested_at, process.id


def _page(processes: list[HeldProcess], limit: int | None, after: str | None) -> tuple[list[HeldProcess], str | None]:
    """The processes behind the cursor, up to the limit, and the cursor of the next page."""
    if after is not None:
        processes = processes[bisect_right(processes, _read_cursor(after), key=_position) :]
    if limit is None or len(processes) <= limit:
        return processes, None
    last = processes[limit - 1]
    return processes[:limit], f"{last.meta.requested_at!r}_{last.id}"


def _read_cursor(text: str) -> tuple[float, str]:
    """The position that it was made of. It stays valid when that process is removed."""
    at, _, process_id = text.partition("_")
    try:
        requested_at = float(at)
    except ValueError:
        requested_at = math.nan
    if not math.isfinite(requested_at) or not is_id(process_id):
        raise BadValue("after must be the `next` of an earlier page")
    return requested_at, process_id


async def inspect(context: DaemonContext, call: Call, ask: Inspect) -> Message:
    """One process with figures measured now, or `unchanged` where the client has seen this state before."""
    process = context.registry.identify(ask.process)
    (shown,) = await context.show_fresh([process], used=_INSPECT_USAGE_AGE)
    token = state_token(shown)
    if ask.seen == token:
        return {"unchanged": True}
    return {
        "process": shown,
        "seen": token,
        "tree": await _tree(context, process) if ask.tree else None,
        "spec": await _spec(context, process) if ask.spec else None,
    }


async def _spec(context: DaemonContext, process: HeldProcess) -> Message:
    """What `start` was asked for, as far as it is recorded and differs from the default."""
    meta = process.meta
    try:
        launched = await context.read(context.place_of(process).spec, process.id)
    except (OSError, ValueError):
        launched = {}
    found: Message = {}
    for name, field in Start.FIELDS.items():
        value = getattr(meta, name, launched.get(name) if field.launch else None)
        value = list(value) if isinstance(value, tuple) else value
        is_default = value == (list(field.default) if isinstance(field.default, tuple) else field.default)
        if field.flags and value is not None and (field.default is Required or not is_default):
            found[name] = value
    return {**await _command(context, process, launched), **found, **_exceptions(context, process, launched)}


async def _command(context: DaemonContext, process: HeldProcess, launched: Message) -> Message:
    """The command text and its shell, where that is not the usual one; else the argv."""
    meta = process.meta
    if meta.command == shlex.join(meta.argv) or len(meta.argv) != 3:
        return {"argv": list(meta.argv)}
    env = launched.get("env") or {}
    usual = (await context.place_of(process).shell_argv("", None, env))[0]
    return {"command": meta.command, **({"shell": meta.argv[0]} if meta.argv[0] != usual else {})}


def _exceptions(context: DaemonContext, process: HeldProcess, launched: Message) -> Message:
    """Options that are recorded under another name, or in another form."""
    meta, env = process.meta, launched.get("env") or {}
    given = {name: env[name] for name in meta.given if name in env}
    secret = secret_names(given)
    found: Message = {
        "env": {name: value for name, value in given.items() if name not in secret},
        "backend": None if meta.backend == "local" else meta.backend,
        "gate": meta.gated,
        "size": [meta.cols, meta.rows] if meta.pty else None,
        "notify": None if meta.end_after_watch or meta.notify == "any" else meta.notify,
        "success_codes": None if meta.success_codes == (0,) else list(meta.success_codes),
        "log_cap": None if meta.log_cap == context.settings.log_cap else meta.log_cap,
        "omitted": sorted({*(set(meta.given) - set(given)), *secret}),
        "labels": dict(meta.labels),
    }
    return found


async def _tree(context: DaemonContext, process: HeldProcess) -> list[Message] | None:
    """All members of its tree; None when the keeper does not answer at once."""
    if not process.is_active:
        return []
    try:
        async with asyncio.timeout(_KEEPER_TIMEOUT):
            members = await context.place_of(process).members(process.id)
    except (Refused, Unreachable, TimeoutError):
        return None
    shown = ("pid", "ppid", "name", "cpu_seconds", "rss_bytes")
    return [{key: getattr(member, key) for key in shown} for member in members]


async def top(context: DaemonContext, call: Call, ask: Top) -> Message:
    """What the running processes use, in the requested order, and the totals of all of them."""
    chosen = [process for process in _chosen(context, ask, context.registry.active()) if not process.is_queued]
    await asyncio.gather(*(place.usage.rate(held) for place, held in context.places.grouped(chosen)))
    rows = [(process, context.place_of(process).usage.tracks.get(process.id) or Track()) for process in chosen]
    rows.sort(key=lambda row: (_SORT_KEYS[ask.sort](row[1]), row[0].meta.requested_at))
    now = time.monotonic()
    return {
        "processes": [_row(context, *row, now, ask.history) for row in islice(rows, ask.limit or None)],
        "total": len(rows),
        "cpu_percent": sum(track.cpu_percent or 0.0 for _, track in rows),
        "rss_bytes": sum(track.rss_bytes or 0 for _, track in rows),
    }


async def glance(context: DaemonContext, call: Call, ask: Glance) -> Message:
    """Process objects with figures that are a second old at most, and last lines. Unknown ids are no error."""
    named = [(name, context.registry.get(ProcessId(name))) for name in dict.fromkeys(ask.processes)]
    found = [one for _, one in named if one is not None and call.sees(one.meta.session)]
    running = [one for one in found if one.is_active and not one.is_queued]
    await asyncio.gather(*(place.usage.rate(held) for place, held in context.places.grouped(running)))
    shown = await context.show_fresh(found, used=_LIST_USAGE_AGE)
    now, rows = time.monotonic(), []
    for process, one in zip(found, shown, strict=True):
        track = context.place_of(process).usage.tracks.get(process.id) if process.is_active else None
        use = {"cpu_percent": track and track.cpu_percent, "history": _history(track or Track(), now, ask.history)}
        rows.append({**one, **use, "last_line": await last_line(context, process, one["output_bytes"])})
    known = {one.id for one in found}
    return {"processes": rows, "unknown": [name for name, _ in named if name not in known]}


def _row(context: DaemonContext, process: HeldProcess, track: Track, now: float, samples: int) -> Message:
    meta = process.meta
    measured = ("cpu_percent", "cpu_seconds", "rss_bytes", "peak_rss_bytes", "ports")
    return {
        "id": meta.id,
        "name": meta.name,
        "status": status_of(process, context.keeper_of(process).is_reachable),
        "session": meta.session,
        "task": meta.task,
        "pid": process.pid,
        "started_at": process.started_at,
        "command": meta.command,
        "limits": meta.limits or None,
        **{name: getattr(track, name) for name in measured},
        "restarts": process.run,
        "created_at": meta.requested_at,
        "history": _history(track, now, samples),
    }


def _history(track: Track, now: float, samples: int) -> dict[str, list[Any]]:
    kept = list(track.history)[-samples:] if samples else []
    return {
        "ago": [round(now - sample.at, 1) for sample in kept],
        "cpu_percent": [round(sample.cpu_percent, 1) for sample in kept],
        "rss_bytes": [sample.rss_bytes for sample in kept],
    }
