"""terminal: a command in the foreground until it ends or its window is over, or one in the background."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.client import launch
from holdfast.errors import HoldfastError, NotFound
from holdfast.model.foreground_labels import CALL, WINDOW
from holdfast.tools import output
from holdfast.tools.answers import Answer, about, answer, asking, clamped
from holdfast.tools.interrupts import Interrupted
from holdfast.tools.output import Shown
from holdfast.tools.workdir import Trail

if TYPE_CHECKING:
    from holdfast.client.process import Process
    from holdfast.client.results.foreground import ForegroundResult
    from holdfast.tools.aio import ToolSession
    from holdfast.tools.arguments import TerminalCall

#: In an answer whose output the daemon has masked: the notices that came with it, for the caller to acknowledge.
CLAIMED = "\0claimed"
_SHORTEST_WINDOW = 0.1
#: Between SIGTERM and SIGKILL for a command that was interrupted.
_GRACE = 0.4
_END_TIMEOUT = 1.5
_AFTER_INTERRUPT = "see what the user wants now"


async def terminal(tools: ToolSession, call: TerminalCall, notices: int, process_id: str | None = None) -> Answer:
    """At most `notices` notices are claimed. `process_id`: that of the process, chosen by the caller.

    Raises HoldfastError, ToolRefusal.
    """
    if call.background:
        with tools.reported("terminal") as outcome:
            outcome[0] = await _background(tools, call, process_id)
            return outcome[0]
    return await _foreground(tools, call, notices, process_id)


async def _background(tools: ToolSession, call: TerminalCall, process_id: str | None) -> Answer:
    cwd, notes = await tools.read(_directory, tools, call)
    deadline = call.timeout or None
    if deadline is not None:
        notes.append(f"it is killed after {deadline:g} s")
    process_id = process_id or launch.new_id()
    is_silent = not (call.notify or call.watch or call.check_interval)
    options = _options(tools, call, cwd, {CALL: process_id}, process_id)
    options |= {"notify": "any" if call.notify else "never" if is_silent else None, "deadline": deadline}
    options |= {"watch": call.watch or None, "check_interval": call.check_interval, "stdin": not call.pty}
    try:
        process = await tools.interrupts.guard(tools.client.run(call.command, **options))
    except Interrupted:  # while the user was asked for approval; what runs by now goes on
        found = await _started(tools, process_id)
        if found is None:
            return await _not_started(tools)
        process = found
    of = "when it ends" if call.notify else "of matches" if call.watch else None
    if of is None and call.check_interval:
        of = "of new output, and of its end"
    next = (
        f"You are notified {of}; go on with other work." if of else "You are NOT notified of its end; use wait for it."
    )
    return about(process, next, note=_note(tools, process, notes))


def _options(
    tools: ToolSession, call: TerminalCall, cwd: str | None, labels: dict[str, str], process_id: str | None
) -> dict[str, Any]:
    """Of a start that is judged first, in an environment without secrets."""
    own = {"id": process_id, "cwd": cwd, "pty": call.pty, "labels": labels, "sandbox": call.sandbox}
    return {"gate": True, "clean": True, **own, **tools.options}


async def _foreground(tools: ToolSession, call: TerminalCall, notices: int, process_id: str | None) -> Answer:
    (cwd, notes), trail = await tools.read(_enter, tools, call)
    limits = tools.limits
    window = clamped(call.timeout, limits.window, limits.longest_window, _SHORTEST_WINDOW, notes)
    if call.watch or call.check_interval:
        notes.append("watch_patterns and check_interval are for background=true")
    workdir = tools.workdir
    process_id = process_id or launch.new_id()
    options = _options(tools, call, cwd, {CALL: process_id, WINDOW: f"{window:g}"}, process_id)
    # Its end is notified from the start on, so that it is not lost if this program dies; the answer consumes it.
    options |= {"notify": "any", "environ": trail.environ() if trail is not None else None}
    run = tools.client.foreground(
        call.command, timeout=window, within=limits.call, shown=limits.budget, notices=notices, **options
    )
    try:
        found = await tools.interrupts.guard(run)
    except Interrupted:
        return await _interrupted(tools, process_id)
    except asyncio.CancelledError:
        with suppress(HoldfastError):
            await asyncio.shield(_end(tools, process_id))
        raise
    finally:
        went = await tools.read(trail.end) if trail is not None else None
    process = found.process
    shown = await _shown(tools, found)
    if process.status == "ended":
        if went is not None and went != cwd and workdir is not None:
            await tools.read(workdir.keep, went, cwd)
        made = _ended(tools, process, shown, went if went != cwd else None, notes)
    else:
        made = _promoted(tools, process, shown, window, notes)
    if found.notices is not None:
        made[CLAIMED] = found.notices
    return made


async def _shown(tools: ToolSession, found: ForegroundResult) -> Shown:
    process = found.process
    if found.shown is not None:
        shown = Shown(**found.shown)
    else:
        with tools.reported("terminal", id=process.id) as outcome:  # the daemon did not report it
            outcome[0] = {"status": process.status, "reason": process.reason or "moved_to_background"}
        shown = await output.whole(tools.client, process.id, process.output_bytes, tools.limits.budget)
    tools.seen.shown(process, shown)
    return shown


def _enter(tools: ToolSession, call: TerminalCall) -> tuple[tuple[str | None, list[str]], Trail | None]:
    """To be called by `read`."""
    entered = _directory(tools, call)
    return entered, tools.workdir.trail(entered[0]) if tools.workdir is not None else None


def _directory(tools: ToolSession, call: TerminalCall) -> tuple[str | None, list[str]]:
    """To be called by `read`."""
    if tools.workdir is None:
        return call.workdir, list(call.notes)
    directory, notice = tools.workdir.enter(call.workdir)
    return directory, [*call.notes, *([notice] if notice else [])]


def _ended(tools: ToolSession, process: Process, shown: Shown, cwd: str | None, notes: list[str]) -> Answer:
    if process.leftover_pids:
        pids = ", ".join(map(str, process.leftover_pids[:5]))
        notes.append(f"it left pid {pids} running, which is not tracked: use background=true instead of &")
    made = about(process, cwd=cwd, note=_note(tools, process, notes), **shown.fields())
    del made["pid"]
    return made


def _promoted(tools: ToolSession, process: Process, shown: Shown, window: float, notes: list[str]) -> Answer:
    next = f"Do not run it again: it goes on in the background as {process.id}"
    if (asks := asking(process)) is not None:
        note = _note(tools, process, notes)
        return about(process, f"{next}; {asks}", reason="needs_input", note=note, **shown.fields())
    next += ", with the same pid. You are notified when it ends; go on with other work, or use process(action='wait')."
    note = _note(tools, process, [f"still running after {window:g} s", *notes])
    return about(process, next, reason="moved_to_background", note=note, **shown.fields(), offset=shown.end)


async def _interrupted(tools: ToolSession, process_id: str) -> Answer:
    process = await _end(tools, process_id)
    if process is None:
        return await _not_started(tools)
    tools.publish("tool.complete", tool="terminal", id=process.id, status="interrupted", reason="interrupted")
    running = await tools.running(process.id)
    shown = await output.whole(tools.client, process.id, process.output_bytes, tools.limits.budget)
    tools.seen.shown(process, shown)
    state = "the command was ended" if process.status == "ended" else "the command is being ended"
    more = {"note": state, "running": running, **shown.fields()}
    return about(process, _AFTER_INTERRUPT, status="interrupted", reason="interrupted", **more)


async def _not_started(tools: ToolSession) -> Answer:
    more = {"note": "the command was not started", "running": await tools.running()}
    return answer("interrupted", "interrupted", _AFTER_INTERRUPT, **more)


async def _end(tools: ToolSession, process_id: str) -> Process | None:
    """End the command of a call that is given up; the process, None where there is none."""
    with suppress(TimeoutError, HoldfastError):
        async with asyncio.timeout(_END_TIMEOUT):
            await tools.client.kill(process_id, grace=_GRACE)
    return await _started(tools, process_id)


async def _started(tools: ToolSession, process_id: str) -> Process | None:
    """The process of a call; None where it was not started."""
    try:
        return await tools.client.inspect(process_id)
    except NotFound:
        return None


def _note(tools: ToolSession, process: Process, notes: list[str]) -> str | None:
    return "; ".join([*notes, *tools.seen.new_notes(process.notes)]) or None
