"""logs: output, by byte, by line, from the end, or as it comes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import NamedTuple

from holdfast.daemon import output, values
from holdfast.daemon.consuming import consume
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import BadValue
from holdfast.logs import lines
from holdfast.model.process import Process
from holdfast.places.base import Extent, Log


class _Wanted(NamedTuple):
    stream: str
    offset: int | None
    line: int | None
    lines: int | None
    most: int | None
    follow: bool
    wait: float | None
    beyond: int | None
    consume: bool


async def handle(room: Room, call: Call, ask: Message) -> Message:
    """Streams the output, then tells where it began and ended, how much there is, and what was dropped.

    With `consume`, an owner who is shown the end of a process that has ended need not be told of it again.
    """
    process = room.registry.identify(values.needed_text(ask, "process", 4096))
    wanted = _read(ask, process)
    log = await room.read(room.place.log, process.id, wanted.stream)
    try:
        clamped = None if wanted.wait is None else await _news(room, log, process, wanted, wanted.wait)
        answer = await _stream(room, call, log, process, wanted)
        if wanted.consume and _is_the_end(answer):
            await consume(room, call, [process.id])
        if call.consumed:
            answer["consumes"] = call.consumed
        elif wanted.wait is not None and answer["end"] == answer["start"]:
            answer = _unchanged(answer)
        if wanted.wait is not None:
            answer["clamped_to"] = clamped
        return answer
    finally:
        log.close()


async def _stream(room: Room, call: Call, log: Log, process: Process, wanted: _Wanted) -> Message:
    start, upto = await room.read(_range, log, wanted)
    if wanted.most is not None:
        upto = min(start + wanted.most, upto) if upto is not None else start + wanted.most
    at = start
    skipped = max(0, start - wanted.offset) if wanted.offset is not None else 0
    async for chunk in output.pieces(room, log, process.id, wanted.stream, start, upto, wanted.follow):
        skipped += chunk.offset - at
        at = chunk.end
        await call.send(wanted.stream, chunk.offset, chunk.data)
        await asyncio.sleep(0)  # a fast reader of a long log must not keep the others waiting
    extent = await room.read(log.extent)
    return _answer(room, process, wanted.stream, start, at, skipped, extent)


async def _news(room: Room, log: Log, process: Process, wanted: _Wanted, wait: float) -> float | None:
    """Until there is something beyond the cursor, or none can come, or the time is over; the limit if it was less."""
    at = max(wanted.offset or 0, wanted.beyond or 0)
    limit = room.settings.wait_limit
    granted = min(wait, limit) if limit > 0 else wait
    if granted > 0 and (await room.read(log.extent)).end <= at:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(granted):
                await output.news(room, process.id, wanted.stream, at)
    return granted if granted < wait else None


def _is_the_end(answer: Message) -> bool:
    return answer["process"]["status"] == "ended" and bool(answer["end"] >= answer["total"])


def _unchanged(answer: Message) -> Message:
    """There is nothing beyond the cursor: that, and no more."""
    process = answer["process"]
    told = {key: answer[key] for key in ("start", "end", "first", "total", "closed")}
    return {"unchanged": True, **told, "id": process["id"], "status": process["status"]}


def _answer(room: Room, process: Process, stream: str, start: int, end: int, skipped: int, extent: Extent) -> Message:
    now = room.registry.get(process.id) or process
    return {
        "start": start,
        "end": end,
        "first": extent.first,
        "total": max(extent.end, end),
        "skipped": skipped,
        "closed": not now.is_waiting and (stream not in now.streams or now.streams[stream].closed),
        "process": room.show(now),
    }


def _range(log: Log, wanted: _Wanted) -> tuple[int, int | None]:
    """Where to begin, and where to stop (None: never). What was dropped or is not there yet is clamped.

    Who does not follow gets what there is now: somebody may write as fast as we read, for ever.
    """
    extent = log.extent()
    end = None if wanted.follow else extent.end
    if wanted.offset is not None:
        start = max(wanted.offset, extent.first)
        return (start if wanted.follow else min(start, extent.end)), end
    if wanted.line is not None:
        start = lines.skip_lines(log, lines.first_line(log, extent), wanted.line, extent.end)
        return start, end if wanted.lines is None else lines.skip_lines(log, start, wanted.lines, extent.end)
    return (extent.first if wanted.lines is None else lines.tail_start(log, wanted.lines, extent)), end


def stream_of(ask: Message, process: Process) -> str:
    stream = values.choice(ask, "stream", ("out", "err"), "out")
    if stream not in process.meta.streams:
        raise BadValue("its streams are kept as one: stderr is part of `out`", next="start it with --split")
    return stream


def _read(ask: Message, process: Process) -> _Wanted:
    wanted = _Wanted(
        stream_of(ask, process),
        offset=values.integer(ask, "from", 0),
        line=values.integer(ask, "line", 0),
        lines=values.integer(ask, "lines", 0),
        most=values.integer(ask, "bytes", 0),
        follow=values.flag(ask, "follow"),
        wait=values.seconds(ask, "wait"),
        beyond=values.integer(ask, "beyond", 0),
        consume=values.flag(ask, "consume"),
    )
    if wanted.wait is not None and (wanted.follow or wanted.line is not None or wanted.lines is not None):
        raise BadValue("only from a byte on can more be waited for", next="give wait with from, and nothing else")
    if wanted.offset is not None and (wanted.line is not None or wanted.lines is not None):
        raise BadValue("either a byte to begin with or lines, not both")
    if wanted.follow and wanted.line is not None:
        raise BadValue("pages of lines cannot be followed", next="follow from a byte, or the last lines")
    return wanted
