"""logs: output, by byte, by line, by time, from the end, or as it comes. log_times: when it arrived."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.notices.objects import consume
from holdfast.daemon.streams import output
from holdfast.errors import BadValue, NotFound
from holdfast.logs import lines
from holdfast.logs.times import TimeEntry, read_index, window
from holdfast.model.process import HeldProcess
from holdfast.ops.output import Logs, LogTimes
from holdfast.places.base import ExecutionPlace, Extent, Log

#: The files of a process that was started less than so many seconds ago are in memory: to open them does not wait.
_NEW = 5.0

#: The first byte of a part; the one to stop at, None for none; where the log ends.
_Part = tuple[int, int | None, int]


async def handle(context: DaemonContext, call: Call, ask: Logs) -> Message:
    """Streams the output. The reply says which bytes were sent, how many there are, and how many were dropped.

    With `consume`, the completion of an ended process counts as delivered when its owner has read the end of the log.
    Raises NotFound if a process that is followed until its end is removed.
    """
    process = context.registry.identify(ask.process)
    _check(ask, process)
    if not ask.follow or ask.until != "exit":
        return await _read(context, call, ask, process)
    with context.inbox.awaiting([process.id] if ask.consume else [], call.owner, is_enough=True):
        return await _read(context, call, ask, process)


async def _read(context: DaemonContext, call: Call, ask: Logs, process: HeldProcess) -> Message:
    if process.is_queued and (ask.follow or ask.wait):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if ask.follow else _granted(context, ask.wait or 0.0)):
                await output.until_started(context, process.id)
    opened = partial(_opened, context.place_of(process), process, ask)
    # While it runs, the keeper has its files open: to look where its log begins and ends does not wait for the disk.
    is_quick = (_is_new(process) or (process.is_up and process.meta.place is None)) and not _seeks(ask)
    log, part = opened() if is_quick else await context.read(opened)
    try:
        clamped = None if ask.wait is None else await _wait_for_more(context, log, process, ask, ask.wait)
        if part is None:
            part = await context.read(_range, log, ask)
        answer = await _stream(context, call, log, process, ask, part)
        if ask.consume and _is_the_end(ask, answer):
            await consume(context, call, [process.id])
        if call.consumed:
            answer["consumes"] = call.consumed
        elif ask.wait is not None and answer["end"] == answer["start"]:
            answer = _unchanged(answer)
        if ask.wait is not None:
            answer["clamped_to"] = clamped
        return answer
    finally:
        log.close()


async def times(context: DaemonContext, call: Call, ask: LogTimes) -> Message:
    """The entries of the index for these bytes, as it is now."""
    process = context.registry.identify(ask.process)
    check_stream(ask.stream, process)
    log = await context.read(context.place_of(process).log, process.id, ask.stream)
    try:
        index = await context.read(read_index, log)
        upto = (await context.read(log.extent)).end if ask.upto is None else ask.upto
        return {"times": [_shown(entry) for entry in index.between(ask.from_, upto)], "known": index.is_known}
    finally:
        log.close()


def _shown(entry: TimeEntry) -> Message:
    size = {"cols": entry.cols, "rows": entry.rows} if entry.cols else {}
    return {"offset": entry.offset, "time": entry.time, **size}


async def _stream(
    context: DaemonContext, call: Call, log: Log, process: HeldProcess, ask: Logs, part: _Part
) -> Message:
    start, part_end, end = part
    upto = part_end
    if ask.bytes is not None:
        upto = min(start + ask.bytes, upto) if upto is not None else start + ask.bytes
    at = start
    skipped = max(0, start - ask.from_) if ask.from_ is not None else 0
    to_exit = ask.follow and ask.until == "exit"
    is_new = _is_new(process)
    async for chunk in output.pieces(
        context, log, process.id, ask.stream, start, upto, ask.follow, end, to_exit, is_new
    ):
        skipped += chunk.offset - at
        at = chunk.end
        await call.send(ask.stream, chunk.offset, chunk.data)
        await asyncio.sleep(0)  # a fast reader of a long log must not delay other callers
    if to_exit and context.registry.get(process.id) is None:
        raise NotFound(f"{process.id} was removed", next="holdfast ps -a")
    extent = log.extent() if _is_new(process) else await context.read(log.extent)
    return {**_answer(context, process, ask.stream, start, at, skipped, extent), "upto": part_end}


def _is_new(process: HeldProcess) -> bool:
    """Whether all that it has written was written a moment ago, on this machine."""
    return process.meta.place is None and 0.0 <= time.time() - (process.started_at or 0.0) < _NEW


async def _wait_for_more(
    context: DaemonContext, log: Log, process: HeldProcess, ask: Logs, wait: float
) -> float | None:
    """Until there is output beyond the cursor, none can come, or the time is over; the limit if that cut the wait."""
    at = max(ask.from_ or 0, ask.beyond or 0)
    granted = _granted(context, wait)
    if granted > 0 and (await context.read(log.extent)).end <= at:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(granted):
                await output.wait_beyond(context, process.id, ask.stream, at)
    return granted if granted < wait else None


def _granted(context: DaemonContext, wait: float) -> float:
    limit = context.settings.wait_limit
    return min(wait, limit) if limit > 0 else wait


def _is_the_end(ask: Logs, answer: Message) -> bool:
    has_ended = answer["process"]["status"] == "ended"
    return has_ended and ((ask.follow and ask.until == "exit") or bool(answer["end"] >= answer["total"]))


def _unchanged(answer: Message) -> Message:
    """The short reply where there is nothing beyond the cursor."""
    process = answer["process"]
    kept = {key: answer[key] for key in ("start", "end", "first", "total", "closed")}
    return {"unchanged": True, **kept, "id": process["id"], "status": process["status"]}


def _answer(
    context: DaemonContext, process: HeldProcess, stream: str, start: int, end: int, skipped: int, extent: Extent
) -> Message:
    now = context.registry.get(process.id) or process
    is_open = now.is_restarting or now.is_queued or (stream in now.streams and not now.streams[stream].closed)
    return {
        "start": start,
        "end": end,
        "first": extent.first,
        "total": max(extent.end, end),
        "skipped": skipped,
        "closed": not is_open,
        "process": context.show(now),
    }


def _opened(place: ExecutionPlace, process: HeldProcess, ask: Logs) -> tuple[Log, _Part | None]:
    """The log and what is to be sent of it, in one switch of threads; None where more is waited for first."""
    log = place.log(process.id, ask.stream)
    try:
        return log, _range(log, ask) if ask.wait is None else None
    except BaseException:
        log.close()
        raise


def _seeks(ask: Logs) -> bool:
    """Whether the log has to be read to find out what is to be sent."""
    return any(value is not None for value in (ask.line, ask.lines, ask.from_time, ask.to_time))


def _range(log: Log, ask: Logs) -> _Part:
    """What is to be sent. Bytes that are not there are clamped.

    Without `follow` it stops at the present end: a process may write as fast as the log is read.
    """
    whole = log.extent()
    extent = window(log, ask.from_time, ask.to_time) if _seeks(ask) else whole
    stop = None if ask.follow else extent.end
    start = extent.first
    if ask.from_ is not None:
        start = max(ask.from_, extent.first)
        start = start if ask.follow else min(start, extent.end)
    elif ask.line is not None:
        start = lines.skip_lines(log, lines.first_line(log, extent), ask.line, extent.end)
        stop = stop if ask.lines is None else lines.skip_lines(log, start, ask.lines, extent.end)
    elif ask.lines is not None:
        start = max(extent.first, lines.tail_start(log, ask.lines, Extent(whole.first, extent.end)))
    return start, stop, whole.end


def check_stream(stream: str, process: HeldProcess) -> None:
    """Raises BadValue where the process has no such stream."""
    if stream not in process.meta.streams:
        raise BadValue("its streams are kept as one: stderr is part of `out`", next="start it with --split")


def _check(ask: Logs, process: HeldProcess) -> None:
    check_stream(ask.stream, process)
    if ask.wait is not None and (ask.follow or ask.line is not None or ask.lines is not None):
        raise BadValue("wait goes with a byte to begin with only", next="give wait with from, and nothing else")
    if ask.from_ is not None and (ask.line is not None or ask.lines is not None):
        raise BadValue("either a byte to begin with or lines, not both")
    if ask.line is not None and (ask.from_time is not None or ask.to_time is not None):
        raise BadValue("lines are counted from the first that is kept, not from a time", next="leave out line")
    if ask.follow and ask.to_time is not None:
        raise BadValue("output up to a time cannot be followed", next="leave out follow")
    if ask.follow and ask.line is not None:
        raise BadValue("pages of lines cannot be followed", next="follow from a byte, or the last lines")
