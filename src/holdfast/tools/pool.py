"""The tools of many sessions, held open; those that were not used for longest are closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from holdfast.tools.aio import AsyncTools

K = TypeVar("K")


class ToolPool(Generic[K]):
    """`make` makes the tools for a key; `most` are held open. Used on one event loop."""

    def __init__(self, make: Callable[[K], AsyncTools], most: int) -> None:
        self._make = make
        self._most = most
        self._tools: dict[K, AsyncTools] = {}
        #: How many calls of each are under way.
        self._busy: dict[AsyncTools, int] = {}

    @asynccontextmanager
    async def using(self, key: K) -> AsyncIterator[AsyncTools]:
        """The tools of a key, which are not closed meanwhile."""
        tools = self._tools[key] = self._tools.pop(key) if key in self._tools else self._make(key)
        self._busy[tools] = self._busy.get(tools, 0) + 1
        try:
            yield tools
        finally:
            self._busy[tools] -= 1
            if not self._busy[tools]:
                del self._busy[tools]
            idle = [key for key, tools in self._tools.items() if tools not in self._busy]
            for tools in [self._tools.pop(key) for key in idle[: max(0, len(self._tools) - self._most)]]:
                await tools.close()

    async def close(self) -> None:
        """Calls under way are interrupted; background processes go on."""
        unused, self._tools = list(self._tools.values()), {}
        await asyncio.gather(*(tools.close() for tools in unused))
