"""Output as it grows: waiting for more, and following it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import aclosing

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.supervisor import stream_extents
from holdfast.daemon.core.tasks import first_of
from holdfast.daemon.core.tasks import follow as follow_cursor
from holdfast.errors import Unreachable
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.model.process_rules import may_run_again
from holdfast.places.base import CHUNK, Chunk, Log
from holdfast.places.keeper_link import Refused

#: Until a place that does not answer is asked again.
_UNREACHABLE_PAUSE = 0.5


async def more_than(context: DaemonContext, process_id: ProcessId, after: int | None) -> None:
    """Until a process has written more than `after` bytes in all (None: more than now), or has ended."""
    process = await until_started(context, process_id)
    if process is None or process.has_ended:
        return
    reached = await ends(context, process)
    target = sum(reached.values()) if after is None else after
    if sum(reached.values()) > target:
        return
    await first_of(
        context.registry.wait_ended(process_id),
        *(_grow(context, process_id, stream, reached, target) for stream in reached),
    )


async def _grow(context: DaemonContext, process_id: ProcessId, stream: str, ends: dict[str, int], target: int) -> None:
    """Wait until the sum of all streams exceeds the target because of this stream; never returns for a closed one."""
    while sum(ends.values()) <= target:
        run = run_of(context, process_id)
        reach = await context.outputs.beyond(process_id, stream, ends[stream])
        ends[stream] = max(ends[stream], reach.end)
        if reach.closed and sum(ends.values()) <= target and not await opens_again(context, process_id, run):
            await context.registry.wait_ended(process_id)
            return


async def wait_beyond(context: DaemonContext, process_id: ProcessId, stream: str, at: int) -> bool:
    """Until a stream has output beyond `at`, is closed, or its process ends. Whether it is closed or has ended.

    For a process that has ended before, until descendants write more or the stream is closed.
    """
    process = await until_started(context, process_id)
    if process is None:
        return True
    reach = context.outputs.beyond(process_id, stream, at)
    ended = () if process.has_ended else (context.registry.wait_ended(process_id),)
    finished = await first_of(reach, *ended)
    now = context.registry.get(process_id)
    if now is None or now.has_ended:
        return True
    return reach in finished and reach.result().closed and not await opens_again(context, process_id, process.run)


async def ends(context: DaemonContext, process: HeldProcess) -> dict[str, int]:
    """How far its output reaches now, as the keeper reports it: known figures may be old."""
    try:
        streams = stream_extents(await context.keeper_of(process).request("report", id=process.id))
    except Refused:  # no such bundle: there is no more output
        streams = process.streams
    return {name: streams[name].end if name in streams else 0 for name in process.meta.streams}


async def pieces(
    context: DaemonContext,
    log: Log,
    process_id: ProcessId,
    stream: str,
    start: int,
    upto: int | None,
    follow: bool,
    end: int | None = None,
    to_exit: bool = False,
    is_new: bool = False,
) -> AsyncIterator[Chunk]:
    """The log from `start` on, up to `upto` or its end; with `follow`, until nothing more can come in any run, or
    `to_exit`: until the process has ended and what it wrote was given. `end`: where the log ended just now, so that
    nothing is read from there before more has come. `is_new`: all of it was written a moment ago.
    """
    run, closed, is_complete = 0, not follow, False
    ahead = math.inf if end is None else end
    most = math.inf if upto is None else upto
    if to_exit and (reach := _reach_at_end(context, process_id, stream)) is not None:
        closed, upto, ahead = True, int(min(reach, most)), math.inf

    async def read(at: int) -> tuple[int, Chunk] | None:
        nonlocal is_complete
        limit = CHUNK if upto is None else min(CHUNK, upto - at)
        has_more = limit > 0 and (at < ahead or not follow)
        chunk = log.read_nowait(at, limit, is_new) if has_more else Chunk(at, b"")
        if chunk is None:
            chunk = await context.read(log.read, at, limit)
        is_complete = upto is not None and max(at, chunk.offset) >= upto
        if is_complete or not chunk.data:
            return None
        return chunk.end, chunk if upto is None else Chunk(chunk.offset, chunk.data[: upto - chunk.offset])

    async def wait(at: int) -> bool:
        nonlocal run, closed, ahead, is_new, upto
        if is_complete:
            return False
        ahead, is_new = math.inf, True
        if closed:
            closed = False
            if not follow or await opens_again(context, process_id, run):
                return follow
            if to_exit:
                await context.registry.wait_ended(process_id)
            return False
        await until_started(context, process_id)
        run = run_of(context, process_id)
        closed = await _is_over_beyond(context, process_id, stream, at, to_exit)
        if to_exit and (reach := _reach_at_end(context, process_id, stream)) is not None:
            upto = int(min(reach, most))
        return True

    async with aclosing(follow_cursor(start, read, wait)) as chunks:
        async for chunk in chunks:
            yield chunk


async def _is_over_beyond(context: DaemonContext, process_id: ProcessId, stream: str, at: int, to_exit: bool) -> bool:
    """Until a stream has output beyond `at` or is closed, or, `to_exit`, its process has ended: whether it is one of
    the latter. A place that does not answer is waited for, until its processes have ended. Raises Unreachable for this
    machine.
    """

    def has_ended() -> bool:
        now = context.registry.get(process_id)
        return to_exit and (now is None or now.has_ended)

    while True:
        reach = context.outputs.beyond(process_id, stream, at)
        with context.registry.watching([process_id]) as changed:
            reach.add_done_callback(lambda _, changed=changed: changed.set())  # type: ignore[misc]
            try:
                while not reach.done() and not has_ended():
                    await changed.wait()
                    changed.clear()
            finally:
                reach.cancel()
        if has_ended():
            return True
        try:
            return reach.result().closed
        except Unreachable:
            process = context.registry.get(process_id)
            if process is None or process.output_closed:
                return True
            if process.meta.place is None:
                raise
            await asyncio.sleep(_UNREACHABLE_PAUSE)


def _reach_at_end(context: DaemonContext, process_id: ProcessId, stream: str) -> int | None:
    """How far a stream reached when its process ended; None while it runs."""
    process = context.registry.get(process_id)
    if process is None or not process.has_ended:
        return None
    reach = process.streams[stream].end if stream in process.streams else 0
    return max(reach, process.exit_offset or 0) if stream == "out" else reach


async def until_started(context: DaemonContext, process_id: ProcessId) -> HeldProcess | None:
    """The process once it was started, or will not be; None when it is removed."""
    process = context.registry.get(process_id)
    if process is not None and process.is_queued:
        await context.registry.until(
            [process_id], lambda: (now := context.registry.get(process_id)) is None or not now.is_queued
        )
        process = context.registry.get(process_id)
    return process


def run_of(context: DaemonContext, process_id: ProcessId) -> int:
    process = context.registry.get(process_id)
    return process.run if process is not None else 0


async def opens_again(context: DaemonContext, process_id: ProcessId, run: int) -> bool:
    """A stream was closed in this run: whether it is open again, once that is known."""

    def is_known() -> bool:
        now = context.registry.get(process_id)
        return now is None or now.run > run or not may_run_again(now)

    await context.registry.until([process_id], is_known)
    process = context.registry.get(process_id)
    return process is not None and process.run > run
