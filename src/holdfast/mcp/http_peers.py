"""Who speaks over HTTP: by the session that the host names, by the protocol's session, or by the handle alone."""

from __future__ import annotations

from contextlib import suppress

from holdfast.mcp.peers import Context, Peer

_MOST = 2000


class HttpPeers:
    """The peer of a request. One that nothing ties to an earlier one is a conversation of its own."""

    def __init__(self) -> None:
        self._peers: dict[str, Peer] = {}

    def __call__(self, ctx: Context) -> Peer:
        headers = ctx.request.headers if ctx.request is not None else {}
        named = _decoded(headers.get("holdfast-session"))
        is_gated = headers.get("holdfast-gated") == "true"
        protocol = headers.get("mcp-session-id")
        if protocol is None:
            peer = Peer(named, is_gated=is_gated, is_brief=named is None)
            peer.is_news(peer.session)  # the host knows what it named; the other is told otherwise
            return peer
        key = f"{protocol} {is_gated} {named or ''}"
        found = self._peers.pop(key, None) or Peer(named, is_gated=is_gated)
        self._peers[key] = found
        while len(self._peers) > _MOST:
            del self._peers[next(iter(self._peers))]
        return found


def _decoded(value: str | None) -> str | None:
    if value is not None:
        with suppress(UnicodeDecodeError, UnicodeEncodeError):
            return value.encode("latin-1").decode()
    return value
