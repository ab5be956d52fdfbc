"""Which conversation of its host a call belongs to: the session is that of the host's hooks, where it is known."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.integrations import hosts
from holdfast.mcp.peers import Peer
from holdfast.paths import find_paths

if TYPE_CHECKING:
    from holdfast.mcp.peers import Context, FindPeer

#: How a host names its conversation in what comes with a call.
_NAMED = ("threadId", "sessionId")
#: What a host tells the servers that it starts.
_TOLD = {"claude-code": "CLAUDE_CODE_SESSION_ID"}


def finder(client: str | None, session: str | None) -> FindPeer:
    """Finds the peer of a call of that program. A `session` that was named holds for all of them."""
    home = find_paths().home
    own = Peer(session)
    peers = {own.session: own}

    def find(ctx: Context) -> Peer:
        """Looked up for every call: a host opens another conversation, and its server stays the same."""
        if client is None or session is not None:
            return own
        found = hosts.bound(home) or _named(client, ctx) or _told(client)
        return peers.setdefault(found, Peer(found)) if found else own

    return find


def _named(client: str, ctx: Context) -> str | None:
    meta = ctx.meta or {}
    return next((name for key in _NAMED if (name := hosts.session_name(client, meta.get(key)))), None)


def _told(client: str) -> str | None:
    return hosts.session_name(client, os.environ.get(_TOLD.get(client, ""), ""))
