"""Who speaks to the server: the session of a connection, and what was said to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from mcp.server.context import ServerRequestContext

from holdfast.mcp.handles import is_handle, new_handle
from holdfast.tools.answers import Refusal

Context: TypeAlias = ServerRequestContext[Any, Any]


class Peer:
    """One conversation. `session` is its own; by a handle it goes on with another.

    `is_gated`: it comes from within a command that was judged, and cannot approve anything. `is_brief`: the server
    knows nothing of it after this request, unless the handle is passed.
    """

    def __init__(self, session: str | None = None, *, is_gated: bool = False, is_brief: bool = False) -> None:
        self.session = session or new_handle()
        self.is_gated = is_gated
        self.is_brief = is_brief
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
