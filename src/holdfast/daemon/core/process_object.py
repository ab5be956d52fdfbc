"""A process as clients see it: exactly the declared fields."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from holdfast import fast_json
from holdfast.model import prompts, readiness, stalls
from holdfast.model.lifecycle import end_signal, exit_code, reason, stop_of
from holdfast.model.process import HeldProcess
from holdfast.model.usage import Track
from holdfast.model.watching import WatchState
from holdfast.places.base import Measures

ProcessObject = dict[str, Any]


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
    stop = stop_of(state)
    ready = readiness.mark_of(process) if process.readiness is not None else None
    stall = stalls.mark_of(process) if process.stall is not None else None
    need = prompts.mark_of(process) if process.need is not None else None
    started_at = process.started_at
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
        "status": _status(process, reachable),
        "reason": reason(state),
        "exit_code": exit_code(state),
        "signal": end_signal(state),
        "started_at": started_at,
        "ended_at": process.ended_at,
        "ready": readiness.is_ready(process),
        "output_bytes": sum(stream.end for stream in streams),
        "dropped_bytes": sum(stream.first for stream in streams),
        "log_cap": meta.log_cap,
        "lifetime": meta.lifetime,
        "notify": process.notify,
        "watch": [*meta.watch, *meta.watch_regex],
        "pty": meta.pty,
        "stdin_open": process.stdin_open and not process.has_ended,
        "deadline_at": process.deadline_at,
        "leftover_pids": measures.leftover_pids if measures is not None else [],
        "restarts": process.run,
        "ports": used.ports if used is not None else [] if process.has_ended else None,
        "cpu_seconds": used.cpu_seconds if used is not None else process.cpu_seconds,
        "rss_bytes": used.rss_bytes if used is not None else None,
        "labels": dict(meta.labels),
        "killed_by": stop.by if stop is not None else None,
        "forced": stop.forced if stop is not None else None,
        "exit_offset": process.exit_offset,
        "stale": process.is_running and started_at is not None and now - started_at > stale_after,
        "trouble": process.trouble,
        "ready_at": ready.at if ready is not None else None,
        "ready_trouble": ready.trouble if ready is not None else None,
        "stalled": stall is not None,
        "stall_data": stalls.stall_object(stall) if stall is not None else None,
        "needs_input": prompts.need_object(need) if need is not None else None,
        "watch_data": _watch(process),
        "split": meta.split,
        "cols": process.cols,
        "rows": process.rows,
        "restart": meta.restart,
        "restart_at": process.restart_at,
        "gave_up": process.gave_up,
        "on_boot": meta.on_boot,
        "started_by_boot": process.boot_run == process.run and process.run > 0,
        "limits": meta.limits or None,
        "peak_rss_bytes": used.peak_rss_bytes if used is not None else process.peak_rss,
    }


def _watch(process: HeldProcess) -> dict[str, Any] | None:
    if not process.meta.watch and not process.meta.watch_regex:
        return None
    state = process.watching or WatchState()
    return {
        "disabled": state.disabled,
        "matches": state.matches,
        "suppressed": state.suppressed,
        "told": state.notified,
    }


def _status(process: HeldProcess, reachable: bool) -> str:
    if process.has_ended:
        return "ended"
    return "running" if reachable else "unreachable"


#: Figures that change all the time.
_VOLATILE = frozenset({"cpu_seconds", "rss_bytes", "peak_rss_bytes"})


def state_token(shown: Mapping[str, Any]) -> str:
    """Identifies the state that was shown. It is the same after a restart of the daemon."""
    lasting = [(key, value) for key, value in sorted(shown.items()) if key not in _VOLATILE]
    return blake2b(fast_json.dumps(lasting), digest_size=8).hexdigest()
