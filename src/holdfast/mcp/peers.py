"""Who speaks to the server: the session of a connection, and what was said to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from mcp.server.context import ServerRequestContext

from holdfast.mcp.handles import is_handle, new_handle
from holdfast.tools.envelope import Refusal

Context: TypeAlias = ServerRequestContext[Any, Any]


class Peer:
    """One conversation. `session` is its own; by a handle it goes on with another."""

    def __init__(self, session: str | None = None) -> None:
        self.session = session or new_handle()
        self._told: set[str] = set()

    def chosen(self, handle: object) -> str:
        """The session that a call is for. Raises Refusal for what is no handle."""
        if handle is None or handle == "" or handle == self.session:
            return self.session
        if isinstance(handle, str) and is_handle(handle.strip()):
            return handle.strip()
        raise Refusal("unknown_session", "no such session", "leave `session` out", status="not_found")

    def is_news(self, session: str) -> bool:
        """Whether the conversation has not been told the name of that session. Asked once, it has."""
        is_news = session not in self._told
        self._told.add(session)
        return is_news


#: Finds the peer of a request.
FindPeer: TypeAlias = Callable[[Context], Peer]


def client_name(ctx: Context) -> str | None:
    params = ctx.session.client_params
    return params.client_info.name if params is not None else None
