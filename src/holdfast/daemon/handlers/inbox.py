"""inbox, notices: the pending notices of a session. ack: acknowledges them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing

from holdfast import light_json
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.listener import scope
from holdfast.daemon.notices import objects, push
from holdfast.errors import BadValue, NotFound
from holdfast.model.events import Notice
from holdfast.ops.sessions import Ack, Inbox, Notices
from holdfast.records import asdict
from holdfast_keeper import failpoints


async def handle(context: DaemonContext, call: Call, ask: Inbox) -> Message:
    """The pending notices; with `wait`, once there is one or the time is over. Reading acknowledges nothing."""
    session = context.current_name(ask.session) or call.owner
    if ask.take and ask.peek:
        raise BadValue("take and peek exclude each other", next="leave one of them out")
    taker, wait = call.taker if ask.take else None, ask.wait
    most = context.settings.wait_limit
    granted = min(wait, most) if most > 0 else wait
    began = time.monotonic()
    await context.inbox.all_arrived(session)
    process = _process_of(context, call, session, ask.process) if ask.process is not None else None

    def is_wanted(notice: Notice) -> bool:
        return (process is None or notice.process == process) and (ask.since is None or notice.at >= ask.since)

    found = (await _pending(context, session, taker, granted, is_wanted))[: ask.limit]
    if taker is not None:
        context.inbox.take(found, taker)
    how = None if ask.peek else "inbox"
    shown = await objects.handed_out(context, found, session, taker, how, ask.raw)
    if shown:
        failpoints.reach("notice-shown")
    clamped = granted if granted < wait else None
    return {"notifications": shown, "waited": time.monotonic() - began, "clamped_to": clamped}


def _process_of(context: DaemonContext, call: Call, session: str, named: str) -> str:
    """The id of a process, also of one that was removed and has notices in this session. Raises as `scope.find`."""
    try:
        return scope.find(context, call, named).id
    except NotFound:
        if any(notice.process == named for notice in context.inbox.of_session(session)):
            return named
        raise


async def _pending(
    context: DaemonContext, session: str, taker: object | None, wait: float, is_wanted: Callable[[Notice], bool]
) -> list[Notice]:
    found = list(filter(is_wanted, context.inbox.of_session(session, taker)))
    if found or not wait:
        return found
    try:
        async with asyncio.timeout(wait):
            return await context.inbox.until_any(session, taker, is_wanted)
    except TimeoutError:
        return []


async def follow(context: DaemonContext, call: Call, ask: Notices) -> Message:
    """Streams pending and new notices until the client gives up. An empty piece: all are acknowledged."""
    session = context.current_name(ask.session) or call.owner
    count = 0
    async with aclosing(push.pushed(context, session, "notices", ask.take, ask.window)) as batches:
        async for batch in batches:
            count += len(batch)
            await call.send("notices", count, "".join(f"{light_json.dumps(one)}\n" for one in batch).encode())
    return {}


async def ack(context: DaemonContext, call: Call, ask: Ack) -> Message:
    """On disk with the reply: these are never delivered again. Acknowledging again is no error."""
    if not ask.ids:
        raise BadValue("acknowledge what?", next="holdfast inbox")
    ids = [one for one in ask.ids if one.isascii()]
    result = asdict(await context.inbox.ack(ids, "ack", context.current_name(ask.session)))
    return {**result, "unknown": [*result["unknown"], *(one for one in ask.ids if not one.isascii())]}
