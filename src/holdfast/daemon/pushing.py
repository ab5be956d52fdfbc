"""What a session is told as it comes: for one who stays and listens."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from holdfast.daemon import notifications
from holdfast.daemon.room import Message, Room

_AT_ONCE = 100


async def pushed(
    room: Room, session: str, how: str, take: bool = False, window: int | None = None
) -> AsyncGenerator[list[Message], None]:
    """Notifications, each once, oldest first, for ever; an empty list whenever all are acknowledged.

    With a `window`, at most so many that are not acknowledged are out. With `take`, what is given here is kept from
    others that take, until it is acknowledged or this is closed.
    """
    taker = object() if take else None
    given: set[str] = set()
    is_told_empty = False
    try:
        while True:
            given = {id_ for id_ in given if room.inbox.is_pending(id_)}
            most = _AT_ONCE if window is None else min(_AT_ONCE, window - len(given))
            found = room.inbox.next_of(room.sessions.resolve(session), taker, given, most)
            if found:
                given.update(notice.id for notice in found)
                if taker is not None:
                    room.inbox.take(found, taker)
                shown = await notifications.handed_out(room, found, session, taker, how)
                given -= {notice.id for notice in found} - {one["id"] for one in shown}
                if shown:
                    yield shown
            elif not given and not is_told_empty:
                yield []
            else:
                await room.inbox.until_changed(session)
            is_told_empty = not found and not given
    finally:
        if taker is not None:
            room.inbox.give_back(taker)
