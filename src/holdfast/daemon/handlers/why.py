"""why: how a process ended or what it waits for, the lines of its output that say so, and what to try."""

from __future__ import annotations

import time

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.streams.tails import tail_of
from holdfast.model import diagnosis
from holdfast.model.diagnosis import PortHolder
from holdfast.model.process import HeldProcess
from holdfast.model.units import age_text
from holdfast.ops.processes import Why
from holdfast.records import asdict

#: Characters at the end of the output that are searched for errors.
_SEARCHED = 40_000


async def handle(context: DaemonContext, call: Call, ask: Why) -> Message:
    """From the state, the end of the output and the ports of this moment. It changes nothing, and consumes nothing."""
    process, now = context.registry.identify(ask.process), time.time()
    (shown,) = await context.show_fresh([process], used=1.0)
    text = (await tail_of(context, process, characters=_SEARCHED)).text
    lines, are_errors = diagnosis.error_lines(text)
    port = await _port_holder(context, call, process, text)
    details = _outage(context, process, now) + diagnosis.details(process, now, shown["dropped_bytes"])
    if (queued := context.registry.get(process.id)) is not None and queued.is_queued:
        details += context.queues.obstacles(queued, call, context.settings.max_processes).sentences()
    return {
        "process": shown,
        "summary": diagnosis.summary(process, now)
        if shown["status"] != "unreachable"
        else f"Whether it runs is not known: its place ({process.meta.backend}) does not answer.",
        "details": [*details, *([port.text()] if port is not None else [])],
        "lines": lines,
        "are_errors": are_errors,
        "port": asdict(port) if port is not None else None,
        "next": [
            *(["holdfast backends"] if shown["status"] == "unreachable" else []),
            *diagnosis.advice(process, lines, port, bool(shown["output_bytes"])),
        ],
    }


def _outage(context: DaemonContext, process: HeldProcess, now: float) -> list[str]:
    """That its place does not answer, since when and why."""
    keeper = context.place_of(process).keeper
    if process.has_ended or process.is_queued or keeper.is_reachable or process.meta.place is None:
        return []
    since = f" for {age_text(now - keeper.lost_at)}" if keeper.lost_at is not None else ""
    why = f": {keeper.trouble}" if keeper.trouble else ""
    return [
        f"Its place ({process.meta.backend}) has not answered{since}{why}",
        "It may still run there; output and exit code come when the place answers again",
    ]


async def _port_holder(context: DaemonContext, call: Call, process: HeldProcess, text: str) -> PortHolder | None:
    """The holder of a port that its output says is in use; where the output does not name it, of one in its command."""
    if not diagnosis.is_port_in_use(text):
        return None
    named = diagnosis.port_in_use(text)
    for port in [named] if named is not None else diagnosis.ports_named(process):
        found = await _holder(context, call, process, port)
        if found is not None and (found.is_held or named is not None):
            return found
    return None


async def _holder(context: DaemonContext, call: Call, process: HeldProcess, port: int) -> PortHolder | None:
    """None where the process itself listens on the port."""
    place = context.place_of(process)
    owner = await place.port_owner(port)
    if owner is None:
        return PortHolder(port, False)
    running = [one for one in context.registry.active() if context.place_of(one) is place]
    await place.usage.fresh(running)
    tracks = place.usage.tracks
    listening = (one for one in running if one.id in tracks and port in (tracks[one.id].ports or ()))
    held = next((one for one in running if one.pid in owner.ancestors), None) or next(listening, None)
    if held is None:
        return PortHolder(port, True, pid=owner.pid, program=owner.program)
    if held.id == process.id:
        return None
    if not call.sees(held.meta.session):
        return PortHolder(port, True)
    return PortHolder(port, True, held.id, held.meta.name, owner.pid, owner.program)
