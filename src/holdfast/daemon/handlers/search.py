"""search: the lines of a log that match a pattern, a page at a time; with `follow`, as they come."""

from __future__ import annotations

import asyncio
import time

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.handlers import logs
from holdfast.daemon.streams import output
from holdfast.errors import BadValue, NotFound
from holdfast.logs import sweep
from holdfast.logs.pattern import Pattern, compile_pattern
from holdfast.logs.sweep import SearchQuery, Sweep
from holdfast.logs.times import window
from holdfast.model.process import ProcessId
from holdfast.ops.output import Search
from holdfast.places.base import Extent

#: Matches on a page, unless fewer are requested.
MOST_MATCHES = 1000
#: A page that has matches, or only counts, is sent after this time even if it is not full.
_PAGE_TIMEOUT = 1.0
#: How long a follower waits for the next match, unless it sets another time.
_FOLLOW_TIMEOUT = 30.0


async def handle(context: DaemonContext, call: Call, ask: Search) -> Message:
    """A page of matches, and where the next one begins. A slow page is sent before it is full."""
    process = context.registry.identify(ask.process)
    logs.check_stream(ask.stream, process)
    pattern = await _pattern(context, ask)
    log = await context.read(context.place_of(process).log, process.id, ask.stream)
    try:
        part = await context.read(window, log, ask.from_time, ask.to_time)
        begin = ask.from_ if ask.from_time is None else max(part.first, ask.from_ or 0)
        start, line, extent = await context.read(sweep.place, log, begin, ask.line, not ask.count)
        end = None if ask.follow else min(part.end, part.end if ask.upto is None else ask.upto)
        limit = ask.limit or MOST_MATCHES
        query = SearchQuery(start, end, line, limit, ask.before, ask.after, invert=ask.invert, counts=ask.count)
        work = Sweep(log, pattern, query)
        is_over = await (_follow(context, ask, process.id, work) if ask.follow else _sweep(context, work))
        extent = await context.read(log.extent)
        # The log is removed before the process is forgotten: in between it is empty.
        if process.has_ended and extent.end < process.streams[ask.stream].end:
            raise NotFound(f"{process.id} was removed while its log was searched")
        return _answer(work, is_over, extent, end)
    finally:
        log.close()


async def _sweep(context: DaemonContext, work: Sweep) -> bool:
    """Whether the end was reached. A page that takes long ends when a line is complete."""
    until = time.monotonic() + _PAGE_TIMEOUT
    while await context.read(work.step):
        found = work.matches or work.query.counts
        if found and time.monotonic() > until and work.next_offset > work.query.start:
            return False
    await context.read(work.finish)
    return not work.is_full


async def _follow(context: DaemonContext, ask: Search, process_id: ProcessId, work: Sweep) -> bool:
    """Until a complete line matches, no more output can come, or the time is over. Whether the end was reached."""
    process = context.registry.get(process_id)
    is_over = process is None or process.has_ended
    try:
        async with asyncio.timeout(_FOLLOW_TIMEOUT if ask.wait is None else ask.wait):
            while True:
                while await context.read(work.step):
                    pass
                if work.matches:
                    return False
                if is_over:
                    break
                is_over = await output.wait_beyond(context, process_id, ask.stream, work.at)
    except TimeoutError:
        return False
    await context.read(work.finish)
    return not work.is_full


def _answer(work: Sweep, is_over: bool, extent: Extent, end: int | None) -> Message:
    search = work.search
    gone = max(0, end - work.at) if is_over and end is not None else 0
    return {
        "matches": work.matches,
        "count": search.count if work.query.counts else len(work.matches),
        "done": is_over,
        "next": {"from": work.next_offset, "line": work.next_line},
        "upto": end,
        "start": work.query.start,
        "searched": max(0, work.next_offset - work.query.start - search.skipped),
        "skipped": search.skipped + gone,
        "long_lines": search.long_lines,
        "first": extent.first,
        "total": max(extent.end, work.at),
    }


async def _pattern(context: DaemonContext, ask: Search) -> Pattern:
    text = ask.pattern
    if text is None:
        raise BadValue("search for which pattern?")
    if ask.follow and ask.to_time is not None:
        raise BadValue("output up to a time cannot be followed", next="search without follow")
    if ask.follow and ask.count:
        raise BadValue("matches that are still to come cannot be counted", next="search without follow")
    return await context.read(lambda: compile_pattern(text, ignore_case=ask.ignore_case, fixed=ask.fixed))
