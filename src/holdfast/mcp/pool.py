"""The tools of every session that is used, held open; those that were not used for longest are let go."""

from __future__ import annotations

import asyncio
import os
from typing import NamedTuple

from holdfast.mcp import patience
from holdfast.tools.aio import AsyncTools

_MOST = 64


class Kind(NamedTuple):
    """What the tools of a session depend on besides it."""

    limit: float
    """The seconds that a call lasts at most."""
    can_ask: bool = False
    """Whether the client asks the person itself, when a command needs approval."""
    pushes: bool = False
    """Whether news is told as it comes, and not with answers."""


class Pool:
    def __init__(self, cwd: str | os.PathLike[str] | None = None) -> None:
        self._cwd = cwd
        self._tools: dict[tuple[str, Kind], AsyncTools] = {}
        self._busy: dict[AsyncTools, int] = {}

    async def answer(self, session: str, kind: Kind, name: str, arguments: object) -> dict[str, object]:
        """The answer of the session's tools. Nothing raises but cancellation."""
        tools = self._of(session, kind)
        self._busy[tools] = self._busy.get(tools, 0) + 1
        try:
            return await tools.answer(name, arguments)
        finally:
            self._busy[tools] -= 1
            await self._let_go()

    async def close(self) -> None:
        """Calls under way are interrupted; background processes go on."""
        unused, self._tools = list(self._tools.values()), {}
        await asyncio.gather(*(tools.close() for tools in unused))

    def _of(self, session: str, kind: Kind) -> AsyncTools:
        key = session, kind
        found = self._tools.pop(key, None) or self._made(session, kind)
        self._tools[key] = found
        return found

    def _made(self, session: str, kind: Kind) -> AsyncTools:
        options = {"asker": kind.can_ask, "approval_wait": patience.approval_wait(kind.limit)}
        limits = patience.limits(kind.limit)
        return AsyncTools(session, cwd=self._cwd, limits=limits, push=kind.pushes, options=options)

    async def _let_go(self) -> None:
        idle = [key for key, tools in self._tools.items() if not self._busy.get(tools)]
        unused = [self._tools.pop(key) for key in idle[: max(0, len(self._tools) - _MOST)]]
        for tools in unused:
            self._busy.pop(tools, None)
            await tools.close()
