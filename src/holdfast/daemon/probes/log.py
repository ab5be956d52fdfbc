"""Ready when the output matches a pattern (`ready_log`)."""

from __future__ import annotations

import asyncio

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.probes import marks
from holdfast.daemon.streams import output
from holdfast.logs.matcher import OnePattern, StreamMatcher
from holdfast.logs.pattern import Pattern, compile_pattern
from holdfast.model.process import HeldProcess
from holdfast.places.base import Chunk, Refused

#: A piece that is larger is searched in a thread.
_SMALL = 8 << 10
_STRIDE = 8 << 20


async def until_matched(context: DaemonContext, process: HeldProcess, pattern: str) -> None:
    """Until one of its streams matches. Output from before this call counts, as far as it is still there."""
    compiled = compile_pattern(pattern, key="ready_log")
    begins = await _begins(context, process)
    searches = {
        asyncio.ensure_future(_search(context, process, stream, begins.get(stream, 0), compiled))
        for stream in process.meta.streams
    }
    try:
        left = searches
        while left:
            finished, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            if any(search.result() for search in finished):
                return
        await asyncio.get_running_loop().create_future()  # the output has ended without a match
    finally:
        for search in searches:
            search.cancel()


async def _begins(context: DaemonContext, process: HeldProcess) -> dict[str, int]:
    """Where to begin: behind the output of earlier runs, and behind what an earlier daemon searched."""
    try:
        born = (await context.keeper_of(process).request("report", id=process.id))["born"]
    except Refused:  # no such bundle: there is no output
        return {}
    begins = {**dict.fromkeys(process.meta.streams, 0), **(born.get("begins") or {})}
    mark = process.readiness_now
    searched = mark.searched if mark is not None else {}
    return {stream: max(at, searched.get(stream, 0)) for stream, at in begins.items()}


async def _search(context: DaemonContext, process: HeldProcess, stream: str, at: int, compiled: Pattern) -> bool:
    # As if a newline came before: a run begins with a line of its own.
    matcher = StreamMatcher(OnePattern(compiled), b"\n", at - 1)
    log = await context.read(context.place_of(process).log, process.id, stream)
    try:
        recorded = at
        async for piece in output.pieces(context, log, process.id, stream, at, None, follow=True):
            if await _matches(context, matcher, piece):
                return True
            if piece.end - recorded > _STRIDE and (line := piece.data.rfind(b"\n") + 1):
                recorded = piece.offset + line
                marks.show_searched(context, process, stream, recorded)
        return False
    finally:
        log.close()


async def _matches(context: DaemonContext, matcher: StreamMatcher, piece: Chunk) -> bool:
    def match() -> bool:
        return any(matcher.feed(piece.offset, piece.data)) or any(matcher.peek())

    if len(piece.data) <= _SMALL:
        found = match()
        await asyncio.sleep(0)  # a process that writes without end must not block the others
        return found
    return await context.read(match)
