"""wait: until processes end, write, match or are ready, or until the time is over."""

from __future__ import annotations

import asyncio
import time

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.notices.objects import consume
from holdfast.daemon.streams import matching, output
from holdfast.errors import BadValue, NotNow
from holdfast.model.lifecycle import Ended
from holdfast.model.probes import prompts
from holdfast.model.process import ProcessId
from holdfast.ops.kinds import IntegerKind
from holdfast.ops.processes import Wait

_OFFSET = IntegerKind({})


async def handle(context: DaemonContext, call: Call, ask: Wait) -> Message:
    """Which processes are done, and all of them as they are now. A timeout is no error: `timed_out` says so.

    With `consume`, completions in the reply count as delivered when the client has confirmed the reply.
    """
    if not ask.processes:
        raise BadValue("wait for which process?", next="holdfast ps")
    ids = list(dict.fromkeys(context.registry.identify(name).id for name in ask.processes))
    need = 1 if ask.mode == "any" else len(ids)
    timeout, clamped = _timeout(ask.timeout, context.settings.wait_limit)
    until = ask.until
    after = _OFFSET.check(ask.after, "after") if until != "match" and ask.after is not None else None
    query = await matching.read(context, ask, ids) if until == "match" else None
    searched: matching.Searched = {}
    awaited = ids if ask.consume and (until == "exit" or len(ids) == 1) else []
    asked_after = ask.or_input if until == "exit" else None
    began = time.monotonic()
    with context.inbox.awaiting(awaited, call.owner, need == 1):
        try:
            async with asyncio.timeout(timeout):
                if query is not None:
                    await matching.until_matched(context, ids, need < len(ids), query, searched)
                    done = matching.done(ids, searched, need < len(ids))
                elif until == "exit":
                    done = await _ended(context, ids, need, asked_after)
                elif until == "ready":
                    done = await _until_settled(context, ids, need)
                else:
                    done = await _written(context, ids, need, after)
        except TimeoutError:
            if query is not None:
                done = matching.done(ids, searched, need < len(ids))
            else:
                done = _settled(context, ids) if until == "ready" else _over(context, ids)
        shown = await _shown(context, ids)
        # Not of one that ended after it was shown: the caller does not know of that end.
        ended = [ProcessId(one["id"]) for one in shown if one["ended_at"] is not None]
        ready = [ProcessId(one["id"]) for one in shown if until == "ready" and one["ready"]]
        await consume(context, call, *((ended, ready) if ask.consume else ([],)))
    return {
        "processes": shown,
        "done": done,
        "timed_out": len(done) < need and not _asking(context, ids, asked_after),
        "waited": time.monotonic() - began,
        "clamped_to": clamped,
        **({} if query is None else {"matches": matching.matches(searched)}),
        **({"consumes": call.consumed} if call.consumed else {}),
    }


def _timeout(asked: float | None, limit: float) -> tuple[float | None, float | None]:
    """How long to wait (None: for ever), and the limit where that cut the wait."""
    if limit > 0 and (asked is None or asked > limit):
        return limit, limit
    return asked, None


async def _ended(context: DaemonContext, ids: list[ProcessId], need: int, asked_after: float | None) -> list[ProcessId]:
    """Those that have ended, once they are enough, or once a process asks for input since `asked_after`."""

    def over() -> tuple[list[ProcessId]] | None:
        found = _over(context, ids)
        return (found,) if len(found) >= need or _asking(context, ids, asked_after) else None

    (found,) = await context.registry.until(ids, over)
    return found


async def _until_settled(context: DaemonContext, ids: list[ProcessId], need: int) -> list[ProcessId]:
    """Those that are settled, once they are enough. Raises NotNow for a process without a readiness probe."""
    for process_id in ids:
        process = context.registry.get(process_id)
        if process is not None and not process.has_ended and process.meta.readiness_kind is None:
            raise NotNow(f"{process_id} has nothing to be ready by", next="start it with --ready-port N or another")
    await context.registry.until(ids, lambda: len(_settled(context, ids)) >= need)
    return _settled(context, ids)


def _settled(context: DaemonContext, ids: list[ProcessId]) -> list[ProcessId]:
    """Those that are ready, then those that cannot become ready any more: ended or removed ones."""

    def is_ready(process_id: ProcessId) -> bool | None:
        process = context.registry.get(process_id)
        return False if process is None or process.has_ended else process.is_ready

    known = {process_id: is_ready(process_id) for process_id in ids}
    return sorted((process_id for process_id in ids if known[process_id] is not None), key=lambda one: not known[one])


def _asking(context: DaemonContext, ids: list[ProcessId], after: float | None) -> bool:
    if after is None:
        return False
    found = (context.registry.get(process_id) for process_id in ids)
    marks = (prompts.mark_of(process) for process in found if process is not None)
    return any(mark is not None and mark.since > after for mark in marks)


async def _written(context: DaemonContext, ids: list[ProcessId], need: int, after: int | None) -> list[ProcessId]:
    """Those with more output than `after`, or than now; a process that has ended counts, too."""
    done: list[ProcessId] = []
    works = {asyncio.ensure_future(output.more_than(context, process_id, after)): process_id for process_id in ids}
    try:
        while len(done) < need:
            finished, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            for work in finished:
                work.result()
                done.append(works.pop(work))
    finally:
        for work in works:
            work.cancel()
    return done


def _over(context: DaemonContext, ids: list[ProcessId]) -> list[ProcessId]:
    """Those that have ended or are removed, in the order of their ends."""
    over = dict[ProcessId, float]()
    for process_id in ids:
        process = context.registry.get(process_id)
        if process is None:
            over[process_id] = 0.0
        elif isinstance(process.state, Ended):
            over[process_id] = process.state.known_at
    return sorted(over, key=over.__getitem__)


async def _shown(context: DaemonContext, ids: list[ProcessId]) -> list[Message]:
    processes = [process for process_id in ids if (process := context.registry.get(process_id)) is not None]
    if all(process.has_ended for process in processes):
        return [context.show(process) for process in processes]  # no measuring: the reply to an end comes at once
    return await context.show_fresh(processes)
