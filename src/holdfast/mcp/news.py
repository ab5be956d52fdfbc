"""News as it comes: as log messages, which consume nothing, or on a channel, where what was sent counts as told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from mcp import types

from holdfast.errors import HoldfastError
from holdfast.mcp.clients import open_client

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from holdfast.client.aio import AsyncClient
    from holdfast.client.notification import Notification

#: The capability that a client looks for, and the topic of what it is sent.
CHANNEL = "claude/channel"
_METHOD: TypeAlias = Literal["notifications/claude/channel"]
_LEVELS: tuple[str, ...] = get_args(types.LoggingLevel)
_PAUSE = 1.0
_MOST_SENT = 10_000

Tell: TypeAlias = Callable[["Notification"], Awaitable[None]]


class ChannelNotification(types.Notification[dict[str, Any], _METHOD]):
    method: _METHOD = "notifications/claude/channel"
    params: dict[str, Any]


async def tell_and_consume(session: str, tell: Tell) -> None:
    """Each piece of news of a session, acknowledged when it was told. Until it is cancelled."""
    while True:
        try:
            async with open_client(session) as client, client.notices() as notices:
                async for notice in notices:  # which acknowledges the one before
                    await tell(notice)
        except HoldfastError:
            await asyncio.sleep(_PAUSE)


async def tell(session: str, tell: Tell) -> None:
    """Each piece of news of a session, once; what it is told of stays in the inbox. Until it is cancelled."""
    sent: dict[str, None] = {}
    while True:
        try:
            async with open_client(session) as client, client.events("notification.queued", follow=True) as queued:
                await _tell_new(client, sent, tell)
                async for _ in queued:
                    await _tell_new(client, sent, tell)
        except HoldfastError:
            await asyncio.sleep(_PAUSE)


async def _tell_new(client: AsyncClient, sent: dict[str, None], tell: Tell) -> None:
    for notice in await client.inbox():
        if notice.id not in sent:
            sent[notice.id] = None
            await tell(notice)
    while len(sent) > _MOST_SENT:
        del sent[next(iter(sent))]


async def send_on_channel(session: ServerSession, notice: Notification) -> None:
    meta = {"kind": notice.kind, "process": notice.process or "", "notice": notice.id}
    message = ChannelNotification(params={"content": notice.text, "meta": meta})
    await session.send_notification(cast(Any, message))


async def send_as_log(
    session: ServerSession, notice: Notification, least: str, request: types.RequestId | None = None
) -> None:
    """A log message, where the client asked for such a level."""
    level = level_of(notice)
    if _LEVELS.index(level) < _LEVELS.index(least):
        return
    params = types.LoggingMessageNotificationParams(level=level, logger="holdfast", data=notice.text)
    await session.send_notification(types.LoggingMessageNotification(params=params), request)


def level_of(notice: Notification) -> types.LoggingLevel:
    is_fine = notice.kind != "completion" or notice.data.get("exit_code") == 0
    return "info" if is_fine else "warning"


def is_level(word: object) -> bool:
    return word in _LEVELS
