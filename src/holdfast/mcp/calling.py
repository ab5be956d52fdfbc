"""One call of a tool, from what the client passed to the result."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import types

from holdfast.mcp import answers, patience
from holdfast.mcp.peers import Context, FindPeer, Peer, client_name
from holdfast.mcp.pool import Kind, Pool
from holdfast.tools.arguments import parse
from holdfast.tools.envelope import Answer, Refusal, refused

#: Under this name stand arguments that are no object, so that they reach the tools, which say what is wrong with them.
_PASS_IT = "pass `session` with every later call"
NOT_AN_OBJECT = "\0arguments"


class Calls:
    def __init__(self, pool: Pool, find_peer: FindPeer, wanted_limit: float | None) -> None:
        self._pool = pool
        self._peer = find_peer
        self._wanted = wanted_limit
        #: Calls that the client gave up, on their way to an orderly end.
        self._ending: set[asyncio.Task[Answer]] = set()

    def limit(self, ctx: Context) -> float:
        """How long a call of this client lasts at most."""
        return patience.call_limit(client_name(ctx), self._wanted)

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Whatever is passed, the answer has the envelope's shape."""
        try:
            return answers.to_result(await self._made(ctx, params.name, params.arguments))
        except Refusal as refusal:
            return answers.to_result(refused(refusal))

    async def _made(self, ctx: Context, name: str, arguments: object) -> Answer:
        given = dict(parse(_unwrapped(arguments)))
        peer = self._peer(ctx)
        session = peer.chosen(given.pop("session", None))
        kind = Kind(self.limit(ctx))
        made = await self._finished(self._pool.answer(session, kind, name, given))
        return _with_session(made, peer, session)

    async def _finished(self, work: Any) -> Answer:
        """The outcome. A client that gives up interrupts it, and does not wait for it to end."""
        task: asyncio.Task[Answer] = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def settle(self, seconds: float) -> None:
        """Until what was given up has ended."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=seconds)


def _with_session(made: Answer, peer: Peer, session: str) -> Answer:
    """The first answer tells the handle. Where the server forgets who called, it says what that means."""
    if peer.is_brief:
        is_own = session == peer.session
        return {**answers.with_note(made, _PASS_IT), "session": session} if is_own else made
    return {**made, "session": session} if peer.is_news(session) else made


def _unwrapped(arguments: object) -> object:
    if isinstance(arguments, dict) and NOT_AN_OBJECT in arguments:
        return arguments[NOT_AN_OBJECT]
    return arguments
