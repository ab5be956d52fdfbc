"""Who calls the server: the session of a connection, and what its client can do."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from mcp.server.context import ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from holdfast.integrations import hosts
from holdfast.paths import find_paths
from holdfast.tools.answers import ToolRefusal

Context: TypeAlias = ServerRequestContext[Any, Any]

_HANDLE = re.compile(r"mcp-[0-9a-f]{16}")
_LONGEST_HANDLE = 64
#: How a host names its conversation in the metadata of a call, and in the environment of its servers.
_CONVERSATION_KEYS = ("threadId", "sessionId")
_CONVERSATION_VARIABLES = {"claude-code": "CLAUDE_CODE_SESSION_ID"}
_MOST_HTTP_PEERS = 2000


def new_handle() -> str:
    """A session name that cannot be guessed, by which a conversation goes on after a restart of the server."""
    return f"mcp-{secrets.token_hex(8)}"


def is_handle(text: str) -> bool:
    """Whether it looks like a handle. Only a handle opens a session that is not the peer's own."""
    return len(text) <= _LONGEST_HANDLE and _HANDLE.fullmatch(text) is not None


class McpPeer:
    """One conversation. `session` is its own; with a handle it goes on with another.

    `is_bound`: it comes from within a held process: it has that one session, and cannot approve anything. `is_brief`:
    the server forgets it after this request, unless the handle is passed.
    """

    def __init__(self, session: str | None = None, *, is_bound: bool = False, is_brief: bool = False) -> None:
        self.session = session or new_handle()
        self.is_bound = is_bound
        self.is_brief = is_brief
        self._known: set[str] = set()

    def chosen(self, handle: object) -> str:
        """The session that a call is for. Raises ToolRefusal for anything but a handle."""
        if handle is None or handle == "" or handle == self.session:
            return self.session
        if isinstance(handle, str) and is_handle(handle.strip()) and not self.is_bound:
            return handle.strip()
        raise ToolRefusal("unknown_session", "no such session", "leave `session` out", status="not_found")

    def is_first_answer(self, session: str) -> bool:
        """Whether the conversation has not been given the name of that session yet. Asked once, it has."""
        is_first = session not in self._known
        self._known.add(session)
        return is_first


#: Finds the peer of a request.
FindPeer: TypeAlias = Callable[[Context], McpPeer]


def client_name(ctx: Context) -> str | None:
    params = ctx.session.client_params
    return params.client_info.name if params is not None else None


def is_modern(ctx: Context) -> bool:
    """Whether it speaks the newest protocol, in which a question is a result, after which the client calls again."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def can_ask(ctx: Context, peer: McpPeer) -> bool:
    """Whether the client shows forms to the user, and may approve."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    if elicitation is None or peer.is_bound or (elicitation.form is None and elicitation.url is not None):
        return False
    return is_modern(ctx) or ctx.session.can_send_request


def stdio_peers(client: str | None, session: str | None) -> FindPeer:
    """The peers of `client`, on stdio. A `session` that was named holds for all calls.

    A host opens another conversation, and its server stays the same: so the session is looked up with every call. It is
    that of the host's hooks, where that is known.
    """
    home = find_paths().home
    own = McpPeer(session)
    peers = {own.session: own}

    def find(ctx: Context) -> McpPeer:
        if client is None or session is not None:
            return own
        found = hosts.bound(home) or _conversation(client, ctx)
        return peers.setdefault(found, McpPeer(found)) if found else own

    return find


def _conversation(client: str, ctx: Context) -> str | None:
    meta = ctx.meta or {}
    ids = [*(meta.get(key) for key in _CONVERSATION_KEYS), os.environ.get(_CONVERSATION_VARIABLES.get(client, ""))]
    return next((name for id_ in ids if (name := hosts.session_name(client, id_))), None)


class HttpPeers:
    """The peer of an HTTP request: by the session that the host names, or by the protocol's session.

    A request that nothing ties to an earlier one is a conversation of its own.
    """

    def __init__(self) -> None:
        self._peers: dict[str, McpPeer] = {}

    def __call__(self, ctx: Context) -> McpPeer:
        headers = ctx.request.headers if ctx.request is not None else {}
        named = headers.get("holdfast-session")
        if named is not None:
            with suppress(UnicodeDecodeError, UnicodeEncodeError):
                named = named.encode("latin-1").decode()
        is_bound = headers.get("holdfast-bound") == "true"
        protocol = headers.get("mcp-session-id")
        if protocol is None:
            peer = McpPeer(named, is_bound=is_bound, is_brief=named is None)
            peer.is_first_answer(peer.session)  # the host knows the name that it gave; a brief one gets it otherwise
            return peer
        key = f"{protocol} {is_bound} {named or ''}"
        known = self._peers.pop(key, None)
        found = self._peers[key] = known or McpPeer(named, is_bound=is_bound)
        while len(self._peers) > _MOST_HTTP_PEERS:
            del self._peers[next(iter(self._peers))]
        return found
