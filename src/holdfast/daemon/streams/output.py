"""Output as it grows: waiting for more of it, and reading it as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing
from typing import Any

from holdfast.daemon.core import cursors, reports
from holdfast.daemon.core.context import DaemonContext
from holdfast.model.ids import ProcessId
from holdfast.model.process import HeldProcess
from holdfast.model.restarts import may_run_again
from holdfast.places.base import CHUNK, Chunk, Log
from holdfast.places.keeper_link import Refused


async def more_than(context: DaemonContext, process_id: ProcessId, after: int | None) -> None:
    """Until a process has written more than `after` bytes in all (None: more than now), or has ended."""
    process = context.registry.get(process_id)
    if process is None or process.has_ended:
        return
    reached = await ends(context, process)
    target = sum(reached.values()) if after is None else after
    if sum(reached.values()) > target:
        return
    await _first_of(
        context.registry.wait_ended(process_id),
        *(_grow(context, process_id, stream, reached, target) for stream in reached),
    )


async def _first_of(*waits: Awaitable[Any]) -> set[asyncio.Future[Any]]:
    """Those that come about first. The others are given up. Raises what one of the first raises."""
    begun: set[asyncio.Future[Any]] = {asyncio.ensure_future(wait) for wait in waits}
    try:
        finished, _ = await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
        for wait in finished:
            wait.result()
        return finished
    finally:
        for wait in begun:
            wait.cancel()


async def _grow(context: DaemonContext, process_id: ProcessId, stream: str, ends: dict[str, int], target: int) -> None:
    """Until this stream brings all of them together beyond the target; a closed one never does."""
    while sum(ends.values()) <= target:
        run = run_of(context, process_id)
        reach = await context.outputs.beyond(process_id, stream, ends[stream])
        ends[stream] = max(ends[stream], reach.end)
        if reach.closed and sum(ends.values()) <= target and not await opens_again(context, process_id, run):
            await context.registry.wait_ended(process_id)
            return


async def news(context: DaemonContext, process_id: ProcessId, stream: str, at: int) -> bool:
    """Until a stream reaches beyond `at`, is closed for good, or its process ends. Whether it is over: closed or ended.

    Of one that has ended before, only what descendants still write is news.
    """
    process = context.registry.get(process_id)
    if process is None:
        return True
    reach = asyncio.ensure_future(context.outputs.beyond(process_id, stream, at))
    ended = () if process.has_ended else (context.registry.wait_ended(process_id),)
    finished = await _first_of(reach, *ended)
    now = context.registry.get(process_id)
    if now is None or now.has_ended:
        return True
    return reach in finished and reach.result().closed and not await opens_again(context, process_id, process.run)


async def ends(context: DaemonContext, process: HeldProcess) -> dict[str, int]:
    """How far its output reaches now. Told by the keeper, who knows; a figure of before would be exceeded at once."""
    try:
        streams = reports.streams(await context.keeper.request("report", id=process.id))
    except Refused:  # no such bundle: nothing can come of it
        streams = process.streams
    return {name: streams[name].end if name in streams else 0 for name in process.meta.streams}


async def pieces(
    context: DaemonContext, log: Log, process_id: ProcessId, stream: str, start: int, upto: int | None, follow: bool
) -> AsyncIterator[Chunk]:
    """The log from `start` on, up to `upto` or its end; with `follow`, until nothing more can come in any run."""
    run, closed, is_complete = 0, not follow, False

    async def read(at: int) -> tuple[int, Chunk] | None:
        nonlocal is_complete
        limit = CHUNK if upto is None else min(CHUNK, upto - at)
        chunk = log.read_nowait(at, limit) if limit > 0 else Chunk(at, b"")
        if chunk is None:
            chunk = await context.read(log.read, at, limit)
        is_complete = upto is not None and max(at, chunk.offset) >= upto
        if is_complete or not chunk.data:
            return None
        return chunk.end, chunk if upto is None else Chunk(chunk.offset, chunk.data[: upto - chunk.offset])

    async def wait(at: int) -> bool:
        nonlocal run, closed
        if is_complete:
            return False
        if closed:
            closed = False
            return follow and await opens_again(context, process_id, run)
        run = run_of(context, process_id)
        closed = (await context.outputs.beyond(process_id, stream, at)).closed
        return True

    async with aclosing(cursors.follow(start, read, wait)) as chunks:
        async for chunk in chunks:
            yield chunk


def run_of(context: DaemonContext, process_id: ProcessId) -> int:
    process = context.registry.get(process_id)
    return process.run if process is not None else 0


async def opens_again(context: DaemonContext, process_id: ProcessId, run: int) -> bool:
    """A stream was closed in this run: whether it is open again, once that is known."""
    with context.registry.watching([process_id]) as changed:
        while (process := context.registry.get(process_id)) is not None and process.run <= run:
            if not may_run_again(process):
                return False
            await changed.wait()
            changed.clear()
        return process is not None
