"""process: what can be done with background processes, and with the notices of the session.

A wait that runs out is no error, and says what to do next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

from holdfast.client.signals import signal_number
from holdfast.errors import HoldfastError, NotNow, StdinClosed
from holdfast.model.foreground_labels import CALL, WINDOW
from holdfast.tools import output
from holdfast.tools.answers import (
    GO_ON,
    Answer,
    ToolRefusal,
    about,
    answer,
    asking,
    bounded,
    clamped,
    row,
    uptime,
    was_background,
    with_note,
)
from holdfast.tools.arguments import LARGEST_NUMBER
from holdfast.tools.interrupts import Interrupted

if TYPE_CHECKING:
    from holdfast.client.process import KillResult, Process, Waited
    from holdfast.tools.aio import ToolSession
    from holdfast.tools.arguments import ProcessCall

#: A tree that takes longer to end is reported as ending.
_KILL_TIMEOUT = 30.0
_LARGEST_TERMINAL = 10_000
_MOST_LINES = 10_000
_MOST_LISTED = 1000
_MOST_BYTES = 1 << 20
#: Half a secret is not recognised as one, so no page is shorter than this.
_LEAST_BYTES = 1024
#: The lines of a larger log are not counted.
_MOST_COUNTED = 8 << 20
_MATCHES, _MOST_MATCHES = 20, 1000
_MATCH_WIDTH = 300
#: The number of rows of a list that have the end of their output.
_PREVIEWS = 20
_MATCH = "match:"


async def process(tools: ToolSession, call: ProcessCall) -> Answer:
    """Raises HoldfastError, ToolRefusal."""
    return with_note(await _ACTIONS[call.action](tools, call), *call.notes)


# Looking.


async def _list(tools: ToolSession, call: ProcessCall) -> Answer:
    """Running processes, then the newest that ended."""
    found = await tools.client.ps(all=True, session=tools.session, used=False)
    found = [process for process in found if was_background(process)]
    running = sum(process.status != "ended" for process in found)
    found.sort(key=lambda process: (process.status == "ended", -(process.started_at or 0.0)))
    most = bounded(call, "limit", 1, _MOST_LISTED, tools.limits.listed)
    next = "limit shows more" if len(found) > most else "you are notified of ends; wait if there is nothing else to do"
    if not found:
        next = "terminal(background=true) starts one"
    previews = await asyncio.gather(*(_preview(tools, process) for process in found[: min(most, _PREVIEWS)]))
    rows = [row(one, previews[at] if at < len(previews) else None) for at, one in enumerate(found[:most])]
    return answer("ok", f"{running} running, {len(found) - running} ended", next, processes=rows)


async def _preview(tools: ToolSession, process: Process) -> str | None:
    try:
        return await output.last_line(tools.client, process.id) if process.output_bytes else None
    except HoldfastError:
        return None  # it was removed meanwhile


async def _poll(tools: ToolSession, call: ProcessCall) -> Answer:
    """Status and newest output; a short answer when nothing has changed since the last poll."""
    process = await tools.find(call.ids[0])
    is_unchanged = tools.seen.polled(process)
    if process.status == "ended":
        return await _end_of(tools, process, with_output=not is_unchanged)
    wait = tools.seen.suggested_wait(process, uptime(process))
    if is_unchanged:
        next = asking(process) or f"do not poll: process(action='wait', timeout={wait}), or other work"
        fields = {"session_id": process.id, "uptime": uptime(process), "suggested_wait": wait}
        return answer("unchanged", "running", next, **fields)
    next = "do other work, or wait for it" if _notifies(process) else "wait for it, if you need its end"
    return await _with_tail(tools, process, tools.limits.poll, asking(process) or next, ready=process.ready)


async def _with_tail(tools: ToolSession, process: Process, characters: int, next: str, **more: Any) -> Answer:
    """The state of a process, with the end of its output."""
    shown = await output.tail(tools.client, process.id, characters)
    new = tools.seen.shown(process, shown)
    return about(process, next, **more, new_bytes=new, **shown.fields())


def _notifies(process: Process) -> bool:
    return process.notify not in (None, "never")


async def _end_of(
    tools: ToolSession, process: Process, *, status: str | None = None, with_output: bool = True
) -> Answer:
    """How a process ended, with the end of its output."""
    if not with_output:
        return about(process, "as before; log shows its output", status=status)
    made = await _with_tail(tools, process, tools.limits.end, GO_ON, status=status)
    return {**made, "next": "log shows all of its output"} if made.get("omitted_bytes") else made


async def _already_exited(tools: ToolSession, process: Process) -> Answer:
    made = await _end_of(tools, process, status="already_exited")
    return {**made, "next": "nothing was done: it ended before"}


async def _log(tools: ToolSession, call: ProcessCall) -> Answer:
    """A page of output. A page that shows the end of an ended process counts as its notification."""
    process = await tools.find(call.ids[0])
    if (call.data or "").strip().lower() == "bytes":
        return await _log_bytes(tools, call, process)
    lines = bounded(call, "limit", 1, _MOST_LINES, tools.limits.page)
    first = call.offset if call.offset is not None and call.offset >= 0 else None
    if call.offset is not None and call.offset < 0:
        lines = -bounded(call, "offset", -_MOST_LINES, -1, -1)
    page = await tools.client.logs(process.id, line=first, lines=lines, consume=True)
    shown = output.fitted(page, tools.limits.budget if call.limit is None else tools.limits.large_budget, first)
    tools.seen.shown(process, shown)
    ended = page.data.count(b"\n")
    count = ended + bool(page.data and not page.data.endswith(b"\n"))
    is_whole = page.start <= page.dropped and page.end >= page.total
    total = count if is_whole else await _line_count(tools, process, page.total - page.dropped)
    made = about(page.process or process, _how_to_go_on(shown, None if first is None else first + ended))
    return {**made, "total_lines": total, "showing": _showing(first, count, total), **_given(shown.fields())}


def _showing(first: int | None, count: int, total: int | None) -> str:
    if first is None:
        first = None if total is None else max(0, total - count)
    if not count:
        return "no lines"
    return f"the last {count} lines" if first is None else f"lines {first}-{first + count - 1}"


def _given(fields: Answer) -> Answer:
    return {key: value for key, value in fields.items() if value is not None}


async def _line_count(tools: ToolSession, process: Process, size: int) -> int | None:
    """The lines that are kept of a log; None for one that is too large to count them."""
    if size > _MOST_COUNTED:
        return None
    return (await tools.client.search(process.id, "^", count=True)).count


async def _log_bytes(tools: ToolSession, call: ProcessCall, process: Process) -> Answer:
    size = bounded(call, "limit", _LEAST_BYTES, _MOST_BYTES, tools.limits.budget.characters)
    offset = bounded(call, "offset", 0, LARGEST_NUMBER, 0)
    page = await tools.client.logs(process.id, offset=offset, bytes=size, consume=True)
    shown = output.fitted(page, tools.limits.large_budget)
    tools.seen.shown(process, shown)
    return about(page.process or process, _how_to_go_on(shown, shown.end), **shown.fields())


def _how_to_go_on(shown: output.Shown, after: int | None) -> str:
    if after is not None:
        return f"more: offset={after}" if shown.end < shown.total else "that is the end of the log"
    return "earlier output: offset=0 is the first line" if shown.omitted else GO_ON


async def _screen(tools: ToolSession, call: ProcessCall) -> Answer:
    process = await tools.find(call.ids[0])
    shown = await tools.client.screen(process.id)
    cursor = f"row {shown.row}, column {shown.col}"
    return about(process, reason="screen", screen=shown.text, size=f"{shown.cols}x{shown.rows}", cursor=cursor)


async def _search(tools: ToolSession, call: ProcessCall) -> Answer:
    """Lines that match, with their numbers; `offset` goes on from a byte."""
    pattern = _data(call, "a regular expression")
    process = await tools.find(call.ids[0])
    limit = bounded(call, "limit", 1, _MOST_MATCHES, _MATCHES)
    offset = bounded(call, "offset", 0, LARGEST_NUMBER, 0) if call.offset is not None else None
    found = await tools.client.search(process.id, pattern, limit=limit, offset=offset)
    numbers = ("" if match.line is None else f"{match.line}: " for match in found.matches)
    lines = [f"{number}{match.text[:_MATCH_WIDTH]}" for number, match in zip(numbers, found.matches, strict=True)]
    next = f"more: offset={found.next_offset}" if found.truncated else "log with offset=LINE shows what is around it"
    if not found.matches:
        next = "nothing matches; log shows the output"
    return about(process, next, reason="searched", count=found.count, matches=lines, omitted=found.note or None)


# Waiting.


async def _wait(tools: ToolSession, call: ProcessCall) -> Answer:
    """Until it ends, or the first of several does; with data, until it writes, is ready or a line matches."""
    notes: list[str] = []
    timeout = clamped(call.timeout, tools.limits.wait, tools.limits.wait, 0.0, notes)
    processes = [await tools.find(text) for text in call.ids]
    until = _until(call.data)
    ids = [process.id for process in processes]
    if until["until"] == "output" and len(ids) == 1:  # output that was not shown yet counts, too
        until["after"] = tools.seen.seen_bytes(processes[0])
    until |= {"any": len(ids) > 1, "or_input": tools.seen.questions_shown_until(processes)}
    try:
        wait = _wait_for_match if until["until"] == "match" else _wait_for
        waited = await tools.interrupts.guard(wait(tools, processes, timeout, until))
    except Interrupted:
        more = {"session_id": ids[0], "uptime": uptime(processes[0]), "running": await tools.running()}
        return answer("interrupted", "interrupted", "see what the user wants now; it goes on", **more)
    return with_note(await _waited(tools, waited, timeout, until["until"]), *notes)


async def _wait_for(tools: ToolSession, processes: list[Process], timeout: float, until: dict[str, Any]) -> Waited:
    return await tools.client.wait_for([process.id for process in processes], timeout=timeout, **until)


async def _wait_for_match(
    tools: ToolSession, processes: list[Process], timeout: float, until: dict[str, Any]
) -> Waited:
    """Until a line matches that was not shown yet, also one that was written before."""
    ends_at = time.monotonic() + timeout
    after = {process.id: tools.seen.first_unseen(process) for process in processes}
    while True:
        offsets = {process_id: {"out": offset} for process_id, offset in after.items()}
        left = max(0.0, ends_at - time.monotonic())
        waited = await _wait_for(tools, processes, left, {**until, "after": offsets})
        passed: dict[str, int] = {}
        for process in waited.processes:
            if (match := process.match) is None or match.stream != "out":
                continue
            at = match.offset if match.match_offset is None else match.match_offset
            unseen = tools.seen.first_unseen(process, at)
            if at < unseen > after[process.id]:
                passed[process.id], process.match = unseen, None
            else:
                tools.seen.range_shown(process, match.offset, await output.line_end(tools.client, process.id, at))
                passed.clear()
                break
        if not passed:
            return waited
        after |= passed


def _until(data: str | None) -> dict[str, Any]:
    words = (data or "").strip()
    if words.startswith(_MATCH) and len(words) > len(_MATCH):
        return {"until": "match", "match": words[len(_MATCH) :]}
    if words in ("", "exit", "output", "ready"):
        return {"until": words or "exit"}
    what = f"cannot wait for {words[:40]!r}"
    raise ToolRefusal("bad_arguments", what, "data is output, ready or match:REGEX; or leave it out")


async def _waited(tools: ToolSession, waited: Waited, timeout: float, until: str) -> Answer:
    ended = [process for process in waited.processes if process.status == "ended"]
    if ended:
        others = [process.id for process in waited.processes if process.status != "ended"]
        made = await _end_of(tools, ended[0])
        if len(ended) > 1:
            made["also_ended"] = [f"{process.id} {process.reason} {process.exit_code}" for process in ended[1:]]
        return {**made, "still_running": others} if others else made
    asks = next(filter(tools.seen.has_new_question, waited.processes), None)
    if asks is not None and until == "exit":
        # It does not go on by itself. The next wait ends with another question alone.
        tools.seen.question_shown(asks)
        return await _with_tail(tools, asks, tools.limits.poll, asking(asks) or GO_ON, reason="needs_input")
    notable = (one for one in waited.processes if one.match is not None or one.needs_input is not None)
    process = next(notable, waited.processes[0])
    if waited.timed_out or until == "exit":  # or the user answered the question first
        return await _timed_out(tools, process, timeout)
    match = process.match.text if process.match is not None else None
    reason = {"output": "new_output", "ready": "ready", "match": "matched"}[until]
    more = {"reason": reason, "match": match, "ready": process.ready}
    return await _with_tail(tools, process, tools.limits.end, GO_ON, **more)


async def _timed_out(tools: ToolSession, process: Process, timeout: float) -> Answer:
    shown = await output.tail(tools.client, process.id, tools.limits.poll)
    new = tools.seen.shown(process, shown)
    next = "do other work: you are notified when it ends" if _notifies(process) else "wait again, or do other work"
    fields = shown.fields() if new else {}
    reason = f"still running after a wait of {timeout:g} s"
    return about(process, asking(process) or next, reason=reason, new_bytes=new, **fields, offset=shown.end)


async def _inbox(tools: ToolSession, call: ProcessCall) -> Answer:
    """Notices, after waiting for some. They are in the answer as in every other."""
    notes: list[str] = []
    timeout = clamped(call.timeout, 0.0, tools.limits.wait, 0.0, notes)
    try:
        found = await tools.interrupts.guard(tools.client.inbox(wait=timeout, limit=1, session=tools.session))
    except Interrupted:
        return answer("interrupted", "interrupted", "see what the user wants now", running=await tools.running())
    if found:
        return with_note(answer("ok", "news", "see notices"), *notes)
    made = answer("ok", "no news", "do other work; notices come to you", running=await tools.running())
    return with_note(made, *notes)


async def _ack(tools: ToolSession, call: ProcessCall) -> Answer:
    ids = _data(call, "the ids of notices").replace(",", " ").split()
    value = await tools.client.ack(*ids[:1000], session=tools.session)
    unknown = value.get("unknown") or None
    return answer("ok", "acknowledged", acked=value.get("acked"), known=value.get("known") or None, unknown=unknown)


# Acting.


async def _kill(tools: ToolSession, call: ProcessCall) -> Answer:
    """SIGTERM first, SIGKILL after a while; with `KILL` as data, SIGKILL at once."""
    requested = (call.data or "").strip()
    if requested and signal_number(requested) != SIGKILL:
        raise ToolRefusal("bad_arguments", "kill takes no signal but KILL", "use action='signal' to send one signal")
    found = await tools.find(call.ids[0])
    if found.status == "ended":
        return await _already_exited(tools, found)
    try:
        async with asyncio.timeout(_KILL_TIMEOUT):
            results = await tools.client.kill(found.id, grace=0.0 if requested else None)
    except TimeoutError:
        return about(found, "it takes long to end; look again later", reason="ending")
    return _killed(await tools.client.inspect(found.id), results[0])


def _killed(process: Process, result: KillResult) -> Answer:
    forced = True if result.forced else None
    if not result.survivors:
        return about(process, forced=forced)
    return about(process, "some of its tree is still alive; tell the user", survivors=result.survivors, forced=forced)


async def _signal(tools: ToolSession, call: ProcessCall) -> Answer:
    number = signal_number(_data(call, "the name of a signal").strip())
    found = await tools.find(call.ids[0])
    if found.status == "ended":
        return await _already_exited(tools, found)
    results = await tools.client.kill(found.id, signal=number)
    return about(await tools.client.inspect(found.id), sent=results[0].sent)


async def _write(tools: ToolSession, call: ProcessCall) -> Answer:
    if call.action == "write":
        _data(call, "the text to write")
    found = await tools.find(call.ids[0])
    if found.status == "ended":
        return await _already_exited(tools, found)
    data = (call.data or "").encode(errors="surrogatepass")
    is_close = call.action == "close"
    try:
        value = await tools.client.send(
            found.id, data, enter=call.action == "submit", eof=is_close, **tools.approval_options()
        )
    except StdinClosed:
        raise _stdin_closed(found) from None
    if value.get("status") == "already_exited":
        return await _already_exited(tools, await tools.client.inspect(found.id))
    next = "its reaction: process(action='wait', data='output')"
    now = await tools.client.inspect(found.id)  # its question may be answered by now
    return about(now, next, reason="stdin_closed" if is_close else "written", bytes_written=value.get("written"))


def _stdin_closed(process: Process) -> ToolRefusal:
    labels = process.labels or {}
    if CALL in labels and WINDOW in labels:
        what = f"{process.id} was started in the foreground, without stdin"
        return ToolRefusal("stdin_closed", what, "start it again with background=true (or pty=true) to write to it")
    what = f"the stdin of {process.id} was closed before (action='close', or it was started without one)"
    next = "nothing more can be written to it: wait for its end, or restart it, which opens stdin again"
    return ToolRefusal("stdin_closed", what, next)


async def _resize(tools: ToolSession, call: ProcessCall) -> Answer:
    words = (call.data or "").lower().replace(" ", "").split("x")
    if len(words) != 2 or not all(_is_size(word) for word in words):
        raise _missing(call, "a size such as 120x30")
    found = await tools.find(call.ids[0])
    if found.status == "ended":
        return await _already_exited(tools, found)
    try:
        await tools.client.resize(found.id, int(words[0]), int(words[1]))
    except NotNow:
        now = await tools.client.inspect(found.id)
        if now.status != "ended":
            raise
        return await _already_exited(tools, now)
    return about(found, reason="resized")


def _is_size(word: str) -> bool:
    return word.isdecimal() and len(word) < 10 and 0 < int(word) <= _LARGEST_TERMINAL


async def _restart(tools: ToolSession, call: ProcessCall) -> Answer:
    found = await tools.find(call.ids[0])
    return about(await tools.client.restart(found.id, **tools.approval_options()), reason="restarted")


async def _transfer(tools: ToolSession, call: ProcessCall) -> Answer:
    to = _data(call, "the session that is to own it")
    found = await tools.find(call.ids[0])
    moved = await tools.client.transfer(found.id, to)
    return about(moved, "it and its notices belong to that session now", reason="transferred", owner=to)


def _data(call: ProcessCall, what: str) -> str:
    """Raises ToolRefusal where there is none."""
    data = call.data or ""
    if not (data if call.action in ("write", "search") else data.strip()):
        raise _missing(call, what)
    return data


def _missing(call: ProcessCall, what: str) -> ToolRefusal:
    return ToolRefusal("bad_arguments", f"{call.action} needs data: {what}", f"call again with data: {what}")


_ACTIONS: dict[str, Callable[[ToolSession, ProcessCall], Awaitable[Answer]]] = {
    "list": _list,
    "poll": _poll,
    "log": _log,
    "screen": _screen,
    "search": _search,
    "wait": _wait,
    "inbox": _inbox,
    "ack": _ack,
    "kill": _kill,
    "signal": _signal,
    **dict.fromkeys(("write", "submit", "close"), _write),
    "resize": _resize,
    "restart": _restart,
    "transfer": _transfer,
}
