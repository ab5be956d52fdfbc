"""search: the lines of a log that match a pattern, a page at a time; with `follow`, as they come."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from holdfast.daemon import output, values
from holdfast.daemon.handlers import logs
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import BadValue
from holdfast.logs import sweep
from holdfast.logs.pattern import LONGEST_PATTERN, Pattern, compile_pattern
from holdfast.logs.reader import Extent, Log
from holdfast.logs.sweep import SearchQuery, Sweep
from holdfast.model.process import Process

#: What a page holds unless less is asked for, and the most context lines of a match.
MOST_MATCHES = 1000
MOST_CONTEXT = 100
#: A page with matches is not kept back for longer, and one that counts alone tells how far it is.
_PATIENCE = 1.0
#: How long a follower waits for the next match unless it says otherwise.
_FOLLOW = 30.0


class _Asked(NamedTuple):
    process: Process
    stream: str
    pattern: Pattern
    limit: int
    before: int
    after: int
    invert: bool
    counts: bool
    offset: int | None
    line: int | None
    upto: int | None
    follow: bool
    wait: float


async def handle(room: Room, call: Call, ask: Message) -> Message:
    """A page of matches, and where the next one begins. It ends early rather than keep matches back."""
    asked = await _read(room, ask)
    log = await room.read(Log, room.paths.place, asked.process.id, asked.stream)
    try:
        start, line, extent = await room.read(sweep.place, log, asked.offset, asked.line, not asked.counts)
        end = None if asked.follow else min(extent.end, extent.end if asked.upto is None else asked.upto)
        query = SearchQuery(
            start, end, line, asked.limit, asked.before, asked.after, invert=asked.invert, counts=asked.counts
        )
        work = Sweep(log, asked.pattern, query)
        is_over = await (_follow(room, asked, work) if asked.follow else _sweep(room, work))
        return _answer(work, is_over, await room.read(log.extent), end)
    finally:
        log.close()


async def _sweep(room: Room, work: Sweep) -> bool:
    """Whether the end was reached. A page that takes long ends when a line is complete."""
    until = time.monotonic() + _PATIENCE
    while await room.read(work.step):
        found = work.matches or work.query.counts
        if found and time.monotonic() > until and work.next_offset > work.query.start:
            return False
    await room.read(work.finish)
    return not work.is_full


async def _follow(room: Room, asked: _Asked, work: Sweep) -> bool:
    """Until there is a match in whole lines, or nothing more can come; at most so many seconds."""
    process = room.registry.get(asked.process.id)
    is_over = process is None or process.has_ended
    try:
        async with asyncio.timeout(asked.wait):
            while True:
                while await room.read(work.step):
                    pass
                if work.matches:
                    return False
                if is_over:
                    break
                is_over = await output.news(room, asked.process.id, asked.stream, work.at)
    except TimeoutError:
        return False
    await room.read(work.finish)
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


async def _read(room: Room, ask: Message) -> _Asked:
    process = room.registry.identify(values.needed_text(ask, "process", 4096))
    text = values.text(ask, "pattern", 16 * LONGEST_PATTERN)
    if text is None:
        raise BadValue("search for which pattern?")
    follow, counts = values.flag(ask, "follow"), values.flag(ask, "count")
    if follow and counts:
        raise BadValue("matches that are still to come cannot be counted", next="search without follow")
    ignore_case, fixed = values.flag(ask, "ignore_case"), values.flag(ask, "fixed")
    return _Asked(
        process,
        logs.stream_of(ask, process),
        await room.read(lambda: compile_pattern(text, ignore_case=ignore_case, fixed=fixed)),
        limit=values.integer(ask, "limit", 1, 1 << 53) or MOST_MATCHES,
        before=values.integer(ask, "before", 0, MOST_CONTEXT) or 0,
        after=values.integer(ask, "after", 0, MOST_CONTEXT) or 0,
        invert=values.flag(ask, "invert"),
        counts=counts,
        offset=values.integer(ask, "from", 0),
        line=values.integer(ask, "line", 0),
        upto=values.integer(ask, "upto", 0),
        follow=follow,
        wait=_FOLLOW if (wait := values.seconds(ask, "wait")) is None else wait,
    )
