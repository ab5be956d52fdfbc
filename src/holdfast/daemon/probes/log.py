"""Ready when the output matches a pattern."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.daemon import output
from holdfast.daemon.probes import marks
from holdfast.daemon.probes.pattern import Search, compile_pattern
from holdfast.daemon.room import Room
from holdfast.model import readiness
from holdfast.model.process import Process
from holdfast.places.base import Refused

#: A piece that is larger is searched in a thread.
_SMALL = 8 << 10
#: So much is searched between two records of how far the search got.
_STRIDE = 8 << 20


async def until_matched(room: Room, process: Process, pattern: str) -> None:
    """Until one of its streams matches. Earlier output counts, as far as it is still there."""
    compiled = compile_pattern(pattern, "ready_log")
    begins = await _begins(room, process)
    searches = {
        asyncio.ensure_future(_search(room, process, stream, begins.get(stream, 0), compiled))
        for stream in process.meta.streams
    }
    try:
        left = searches
        while left:
            finished, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            if any(search.result() for search in finished):
                return
        await asyncio.get_running_loop().create_future()  # all output is there, and none of it matched
    finally:
        for search in searches:
            search.cancel()


async def _begins(room: Room, process: Process) -> dict[str, int]:
    """Where to begin: behind the output of earlier runs, and behind what an earlier daemon searched in vain."""
    try:
        born = (await room.keeper.request("report", id=process.id))["born"]
    except Refused:  # no such bundle: nothing can match
        return {}
    begins = {**dict.fromkeys(process.meta.streams, 0), **(born.get("begins") or {})}
    mark = readiness.mark_of(process)
    searched = mark.searched if mark is not None else {}
    return {stream: max(at, searched.get(stream, 0)) for stream, at in begins.items()}


async def _search(room: Room, process: Process, stream: str, at: int, compiled: Any) -> bool:
    search = Search(compiled)
    log = await room.read(room.place.log, process.id, stream)
    try:
        recorded = at
        async for piece in output.pieces(room, log, process.id, stream, at, None, follow=True):
            if piece.offset != at:
                search.skip()
            at = piece.end
            if await _feed(room, search, piece.data):
                return True
            if at - recorded > _STRIDE and (line := piece.data.rfind(b"\n") + 1):
                recorded = piece.offset + line
                marks.show_searched(room, process, stream, recorded)
        return False
    finally:
        log.close()


async def _feed(room: Room, search: Search, data: bytes) -> bool:
    if len(data) <= _SMALL:
        found = search.feed(data)
        await asyncio.sleep(0)  # endless output must not keep other tasks waiting
        return found
    return await room.read(search.feed, data)
