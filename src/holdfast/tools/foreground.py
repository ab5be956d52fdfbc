"""terminal: a command in the foreground until it ends or its window is over, or one in the background."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.client.process import Process
from holdfast.errors import HoldfastError
from holdfast.model.foreground import CALL, WINDOW
from holdfast.tools import door, reading
from holdfast.tools.context import Context, about, asking, clamped, still_running
from holdfast.tools.envelope import Answer, answer
from holdfast.tools.interrupts import Interrupted
from holdfast.tools.limits import SHORTEST_WINDOW

if TYPE_CHECKING:
    from holdfast.tools.arguments import TerminalCall
    from holdfast.tools.places import Trail

#: Between the polite signal and the forced end of what was interrupted.
_GRACE = 0.4
_END_WITHIN = 1.5
_AFTER_INTERRUPT = "see what the user wants now"


async def terminal(context: Context, call: TerminalCall) -> Answer:
    """Raises HoldfastError, Refusal."""
    return await (_background if call.background else _foreground)(context, call)


async def _background(context: Context, call: TerminalCall) -> Answer:
    cwd, notes = await _place(context, call)
    deadline = call.timeout or None
    if deadline is not None:
        notes.append(f"it is killed after {deadline:g} s")
    started = _Started()
    options = {**_options(context, call, cwd), **_news(call), "deadline": deadline, "labels": started.labels()}
    try:
        process = await context.interrupts.guard(door.start(context.client, call.command, options))
    except Interrupted:  # while a person was asked; what runs by now goes on
        found = await _found(context, started)
        if found is None:
            return await _not_started(context)
        process = found
    context.memory.shown(process)
    told = "You are told when it ends" if call.notify else "You are told of matches" if call.watch else None
    if told is None and call.check_interval:
        told = "You are told of new output, and of its end"
    next = f"{told}; go on with other work." if told else "You are NOT told when it ends; use wait if you need it."
    return about(process, next, note=_joined([*notes, *context.memory.unsaid(process.notes)]))


def _news(call: TerminalCall) -> dict[str, Any]:
    """What its owner is told. Asking for nothing is asking for silence."""
    is_silent = not (call.notify or call.watch or call.check_interval)
    return {
        "notify": "any" if call.notify else "never" if is_silent else None,
        "watch": call.watch or None,
        "check_interval": call.check_interval,
        "stdin": not call.pty,
    }


def _options(context: Context, call: TerminalCall, cwd: str | None) -> dict[str, Any]:
    return {"cwd": cwd, "pty": call.pty, **context.options}


class _Started:
    """How far a foreground call has come."""

    def __init__(self) -> None:
        self.process: Process | None = None
        #: By it the process is found where its start was given up in the middle.
        self.mark = secrets.token_hex(8)

    def labels(self, window: float | None = None) -> dict[str, str]:
        return {CALL: self.mark, **({WINDOW: f"{window:g}"} if window is not None else {})}


async def _foreground(context: Context, call: TerminalCall) -> Answer:
    cwd, notes = await _place(context, call)
    limits = context.limits
    window = clamped(call.timeout, limits.window, limits.longest_window, SHORTEST_WINDOW, notes)
    if call.watch or call.check_interval:
        notes.append("watch_patterns and check_interval are for background=true")
    trail = await asyncio.to_thread(context.places.trail, cwd) if context.places is not None else None
    started = _Started()
    try:
        process = await context.interrupts.guard(_run(context, call, cwd, window, trail, started))
    except Interrupted:
        return await _interrupted(context, started)
    except asyncio.CancelledError:
        with suppress(HoldfastError):
            await asyncio.shield(_given_up(context, started))
        raise
    finally:
        went = await asyncio.to_thread(trail.end) if trail is not None else None
    if process.status != "ended":
        return await _promoted(context, process, window, notes)
    if went is not None and went != cwd and context.places is not None:
        await asyncio.to_thread(context.places.keep, went, cwd)
    return await _ended(context, process, went if went != cwd else None, notes)


async def _place(context: Context, call: TerminalCall) -> tuple[str | None, list[str]]:
    if context.places is None:
        return call.workdir, list(call.notes)
    place = await asyncio.to_thread(context.places.enter, call.workdir)
    return place.directory, [*call.notes, *([place.notice] if place.notice else [])]


async def _run(
    context: Context, call: TerminalCall, cwd: str | None, window: float, trail: Trail | None, started: _Started
) -> Process:
    """Its end is told from the start on, so that nobody who dies on the way takes it along; the wait consumes it."""
    options = {
        **_options(context, call, cwd),
        "notify": "any",
        "labels": started.labels(window),
        "environ": trail.environ() if trail is not None else None,
    }
    begun = time.monotonic()
    process = started.process = await door.start(context.client, call.command, options)
    left = window if context.limits.call is None else context.limits.call - (time.monotonic() - begun)
    timeout = min(window, max(left, SHORTEST_WINDOW))
    waited = await context.client.wait_for([process.id], timeout=timeout, or_input=0.0)
    return Process(waited.processes[0].to_json(), process.notes)


async def _ended(context: Context, process: Process, cwd: str | None, notes: list[str]) -> Answer:
    shown = await reading.whole(context.client, process.id, process.output_bytes, context.limits.room)
    context.memory.shown(process, shown.end)
    if process.leftover_pids:
        pids = ", ".join(map(str, process.leftover_pids[:5]))
        notes.append(f"it left pid {pids} running, which nobody tracks: use background=true instead of &")
    made = about(process, cwd=cwd, note=_joined([*notes, *context.memory.unsaid(process.notes)]), **shown.fields())
    del made["pid"]
    return made


async def _promoted(context: Context, process: Process, window: float, notes: list[str]) -> Answer:
    shown = await reading.whole(context.client, process.id, process.output_bytes, context.limits.room)
    context.memory.shown(process, shown.end)
    next = (
        f"Do not run it again: it goes on in the background as {process.id}, with the same pid. You are told when it "
        "ends; go on with other work, or use process(action='wait')."
    )
    if (asks := asking(process)) is not None:
        note = _joined([*notes, *context.memory.unsaid(process.notes)])
        next = f"Do not run it again: it goes on in the background as {process.id}; {asks}"
        return about(process, next, reason="needs_input", note=note, **shown.fields())
    note = _joined([f"still running after {window:g} s", *notes, *context.memory.unsaid(process.notes)])
    return about(process, next, reason="moved_to_background", note=note, **shown.fields(), offset=shown.end)


async def _interrupted(context: Context, started: _Started) -> Answer:
    process = await _given_up(context, started)
    if process is None:
        return await _not_started(context)
    running = await still_running(context, process.id)
    shown = await reading.whole(context.client, process.id, process.output_bytes, context.limits.room)
    context.memory.shown(process, shown.end)
    state = "the command was ended" if process.status == "ended" else "the command is being ended"
    more = {"note": state, "running": running, **shown.fields()}
    return about(process, _AFTER_INTERRUPT, status="interrupted", reason="interrupted", **more)


async def _not_started(context: Context) -> Answer:
    running = await still_running(context)
    note = "the command was not started"
    return answer("interrupted", "interrupted", _AFTER_INTERRUPT, note=note, running=running)


async def _given_up(context: Context, started: _Started) -> Process | None:
    """End the command of a call that nobody waits for any more; the process, None where there is none."""
    process = started.process or await _found(context, started)
    if process is None:
        return None
    try:
        async with asyncio.timeout(_END_WITHIN):
            await context.client.kill(process.id, grace=_GRACE)
    except (TimeoutError, HoldfastError):
        pass
    return await context.client.inspect(process.id)


async def _found(context: Context, started: _Started) -> Process | None:
    """A process that runs though its start was given up."""
    for process in await context.client.ps(session=context.session, used=False):
        if (process.labels or {}).get(CALL) == started.mark:
            return process
    return None


def _joined(notes: list[str]) -> str | None:
    return "; ".join(notes) or None
