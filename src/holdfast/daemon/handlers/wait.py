"""wait: until processes end, write or are ready, or until the time is over."""

from __future__ import annotations

import asyncio
import time

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.notices.objects import consume
from holdfast.daemon.probes import waiting
from holdfast.daemon.streams import matching, output
from holdfast.errors import BadValue
from holdfast.model import prompts
from holdfast.model.ids import ProcessId
from holdfast.model.lifecycle import Ended
from holdfast.ops.kinds import IntegerKind
from holdfast.ops.processes import Wait

_OFFSET = IntegerKind({})


async def handle(context: DaemonContext, call: Call, ask: Wait) -> Message:
    """A wait that runs out is no error: it says so, and how things stand."""
    if not ask.processes:
        raise BadValue("wait for which process?", next="holdfast ps")
    ids = list(dict.fromkeys(context.registry.identify(name).id for name in ask.processes))
    need = 1 if ask.mode == "any" else len(ids)
    timeout, clamped = _timeout(ask.timeout, context.settings.wait_limit)
    until = ask.until
    after = _OFFSET.check(ask.after, "after") if until != "match" and ask.after is not None else None
    wanted = await matching.read(context, ask, ids) if until == "match" else None
    looked: matching.Searched = {}
    awaited = ids if ask.consume and (until == "exit" or len(ids) == 1) else []
    asked_after = ask.or_input if until == "exit" else None
    began = time.monotonic()
    with context.inbox.awaiting(awaited, call.owner, need == 1):
        try:
            async with asyncio.timeout(timeout):
                if wanted is not None:
                    await matching.until_matched(context, ids, need < len(ids), wanted, looked)
                    done = matching.done(ids, looked, need < len(ids))
                elif until == "exit":
                    done = await _ended(context, ids, need, asked_after)
                elif until == "ready":
                    done = await waiting.until_settled(context, ids, need)
                else:
                    done = await _written(context, ids, need, after)
        except TimeoutError:
            if wanted is not None:
                done = matching.done(ids, looked, need < len(ids))
            else:
                done = waiting.settled(context, ids) if until == "ready" else _over(context, ids)
        shown = await _shown(context, ids)
        await consume(context, call, ids if ask.consume else [])
    return {
        "processes": shown,
        "done": done,
        "timed_out": len(done) < need and not _asking(context, ids, asked_after),
        "waited": time.monotonic() - began,
        "clamped_to": clamped,
        **({} if wanted is None else {"matches": matching.matches(looked)}),
        **({"consumes": call.consumed} if call.consumed else {}),
    }


def _timeout(asked: float | None, limit: float) -> tuple[float | None, float | None]:
    """How long to wait (None for ever), and the limit if it made that less than was asked for."""
    if limit > 0 and (asked is None or asked > limit):
        return limit, limit
    return asked, None


async def _ended(context: DaemonContext, ids: list[ProcessId], need: int, asked_after: float | None) -> list[ProcessId]:
    """Those that have ended, once there are enough of them, or once one asks something that it did not ask then."""
    with context.registry.watching(ids) as changed:
        while True:
            done = _over(context, ids)
            if len(done) >= need or _asking(context, ids, asked_after):
                return done
            await changed.wait()
            changed.clear()


def _asking(context: DaemonContext, ids: list[ProcessId], after: float | None) -> bool:
    if after is None:
        return False
    found = (context.registry.get(process_id) for process_id in ids)
    marks = (prompts.mark_of(process) for process in found if process is not None)
    return any(mark is not None and mark.since > after for mark in marks)


async def _written(context: DaemonContext, ids: list[ProcessId], need: int, after: int | None) -> list[ProcessId]:
    """Those with output beyond `after`, or beyond what they have now; one that ended counts, too."""
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
    """Those that have ended or are forgotten, in the order of their ends."""
    states = {
        process_id: process.state if (process := context.registry.get(process_id)) else None for process_id in ids
    }
    ends = {process_id: state.known_at if isinstance(state, Ended) else 0.0 for process_id, state in states.items()}
    over = [process_id for process_id in ids if states[process_id] is None or isinstance(states[process_id], Ended)]
    return sorted(over, key=ends.__getitem__)


async def _shown(context: DaemonContext, ids: list[ProcessId]) -> list[Message]:
    processes = [process for process_id in ids if (process := context.registry.get(process_id)) is not None]
    if all(process.has_ended for process in processes):
        return [context.show(process) for process in processes]  # whoever waited for the end waits no longer
    return await context.show_fresh(processes)
