"""The notifications of a session as a stream, for a client that stays connected."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from holdfast.daemon.core.context import DaemonContext, Message
from holdfast.daemon.core.tasks import follow
from holdfast.daemon.notices import objects

_AT_ONCE = 100


async def pushed(
    context: DaemonContext, session: str, how: str, take: bool = False, window: int | None = None
) -> AsyncGenerator[list[Message], None]:
    """Notifications, each once, oldest first, for ever; an empty list whenever all are acknowledged.

    With a `window`, at most this many are sent without being acknowledged. With `take`, other takers do not get the
    same ones until they are acknowledged or this is closed.
    """
    await context.inbox.all_arrived(context.sessions.resolve(session))
    taker = object() if take else None
    given: set[str] = set()
    is_idle = False

    async def read(_: None) -> tuple[None, list[Message]] | None:
        nonlocal given, is_idle
        while True:
            given = {id_ for id_ in given if context.inbox.is_pending(id_)}
            most = _AT_ONCE if window is None else min(_AT_ONCE, window - len(given))
            found = context.inbox.next_of(context.sessions.resolve(session), taker, given, most)
            if not found:
                was_idle, is_idle = is_idle, not given
                return (None, []) if is_idle and not was_idle else None
            given.update(notice.id for notice in found)
            if taker is not None:
                context.inbox.take(found, taker)
            shown = await objects.handed_out(context, found, session, taker, how)
            given -= {notice.id for notice in found} - {one["id"] for one in shown}
            is_idle = False
            if shown:
                return None, shown

    async def wait(_: None) -> bool:
        await context.inbox.until_changed(session)
        return True

    try:
        async with aclosing(follow(None, read, wait)) as batches:
            async for batch in batches:
                yield batch
    finally:
        if taker is not None:
            context.inbox.give_back(taker)
