"""process: looking at what runs and at what it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.tools import reading
from holdfast.tools.context import Context, about, asking, brief, uptime, was_background
from holdfast.tools.envelope import Answer, Refusal, answer

if TYPE_CHECKING:
    from holdfast.client.process import Process
    from holdfast.tools.arguments import ProcessCall

_MOST_LINES = 10_000
_MOST_BYTES = 1 << 20
#: A secret is masked where enough of it is there to be known: not in pieces that are shorter than it.
_LEAST_BYTES = 1024
_MATCHES, _MOST_MATCHES = 20, 1000
_MATCH_WIDTH = 300


async def list_all(context: Context, call: ProcessCall) -> Answer:
    """Those that run, then the newest that ended."""
    found = await context.client.ps(all=True, session=context.session, used=False)
    found = [process for process in found if was_background(process)]
    running = sum(process.status != "ended" for process in found)
    found.sort(key=lambda process: (process.status == "ended", -(process.started_at or 0.0)))
    most = max(1, min(call.limit or context.limits.listed, 1000))
    more = len(found) - most
    next = "limit shows more" if more > 0 else "ends are told to you; wait if there is nothing else to do"
    if not found:
        next = "terminal(background=true) starts one"
    rows = [brief(process) for process in found[:most]]
    return answer("ok", f"{running} running, {len(found) - running} ended", next, processes=rows)


async def poll(context: Context, call: ProcessCall) -> Answer:
    """How it stands, and its newest output; a word alone when nothing has changed since the last poll."""
    process = await context.find(call.ids[0])
    is_unchanged = context.memory.polled(process)
    if process.status == "ended":
        return await end_of(context, process, with_output=not is_unchanged)
    wait = context.memory.suggested_wait(process, uptime(process))
    if is_unchanged:
        next = asking(process) or f"do not poll: process(action='wait', timeout={wait}), or other work"
        fields = {"session_id": process.id, "uptime": uptime(process), "suggested_wait": wait}
        return answer("unchanged", "running", next, **fields)
    shown = await reading.tail(context.client, process.id, context.limits.poll)
    new = context.memory.shown(process, shown.end)
    next = "do other work, or wait for it" if _tells(process) else "wait for it, if you need its end"
    return about(process, asking(process) or next, new_bytes=new, ready=process.ready, **shown.fields())


def _tells(process: Process) -> bool:
    return process.notify not in (None, "never")


async def end_of(context: Context, process: Process, *, status: str | None = None, with_output: bool = True) -> Answer:
    """How a process ended, with the end of its output."""
    if not with_output:
        return about(process, "as before; log shows its output", status=status)
    shown = await reading.tail(context.client, process.id, context.limits.end)
    new = context.memory.shown(process, shown.end)
    next = "log shows all of its output" if shown.omitted else "go on"
    return about(process, next, status=status, new_bytes=new, **shown.fields())


async def log(context: Context, call: ProcessCall) -> Answer:
    """A page of output. Whoever is shown the end of what has ended has been told of it."""
    process = await context.find(call.ids[0])
    if (call.data or "").strip().lower() == "bytes":
        return await _bytes(context, call, process)
    lines = max(1, min(call.limit or context.limits.page, _MOST_LINES))
    first = call.offset if call.offset is not None and call.offset >= 0 else None
    if call.offset is not None and call.offset < 0:
        lines = min(-call.offset, _MOST_LINES)
    page = await context.client.logs(process.id, line=first, lines=lines, consume=True)
    room = context.limits.room if call.limit is None else context.limits.large_room
    shown = reading.fitted(page, room, first)
    context.memory.shown(process, shown.end)
    after = None if first is None else first + page.data.count(b"\n")
    return about(page.process or process, _go_on(shown, after), **shown.fields())


async def _bytes(context: Context, call: ProcessCall, process: Process) -> Answer:
    size = max(_LEAST_BYTES, min(call.limit or context.limits.room.characters, _MOST_BYTES))
    note = f"at least {_LEAST_BYTES} bytes are shown" if call.limit is not None and call.limit < _LEAST_BYTES else None
    offset = max(0, call.offset or 0)
    page = await context.client.logs(process.id, offset=offset, bytes=size, consume=True)
    shown = reading.fitted(page, context.limits.large_room)
    context.memory.shown(process, shown.end)
    return about(page.process or process, _go_on(shown, shown.end), note=note, **shown.fields())


def _go_on(shown: reading.Shown, after: int | None) -> str:
    if after is not None:
        return f"more: offset={after}" if shown.end < shown.total else "that is the end of the log"
    if shown.omitted:
        return "earlier output: offset=0 is the first line"
    return "go on"


async def screen(context: Context, call: ProcessCall) -> Answer:
    process = await context.find(call.ids[0])
    shown = await context.client.screen(process.id)
    cursor = f"row {shown.row}, column {shown.col}"
    return about(process, reason="screen", screen=shown.text, size=f"{shown.cols}x{shown.rows}", cursor=cursor)


async def search(context: Context, call: ProcessCall) -> Answer:
    """Lines that match, with their numbers: offset goes on from a byte."""
    if not call.data:
        raise Refusal("bad_arguments", "search needs data: a regular expression", "call again with data")
    process = await context.find(call.ids[0])
    limit = max(1, min(call.limit or _MATCHES, _MOST_MATCHES))
    offset = max(0, call.offset) if call.offset is not None else None
    found = await context.client.search(process.id, call.data, limit=limit, offset=offset)
    lines = [f"{_number(match.line)}{match.text[:_MATCH_WIDTH]}" for match in found.matches]
    next = f"more: offset={found.next_offset}" if found.truncated else "log with offset=LINE shows what is around it"
    if not found.matches:
        next = "nothing matches; log shows the output"
    return about(process, next, reason="searched", count=found.count, matches=lines, omitted=found.note or None)


def _number(line: int | None) -> str:
    return "" if line is None else f"{line}: "
