"""Following by cursor: the one way to read what is there and then what comes. Events, notices and logs use it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

Cursor = TypeVar("Cursor")
Batch = TypeVar("Batch")


async def follow(
    after: Cursor,
    read: Callable[[Cursor], Awaitable[tuple[Cursor, Batch] | None]],
    wait: Callable[[Cursor], Awaitable[bool]],
) -> AsyncGenerator[Batch, None]:
    """Every batch behind the cursor, in order, each once.

    `read` gives the next batch and the cursor behind it, or None when there is nothing yet. `wait` returns when it is
    worth reading again; False ends it.
    """
    while True:
        while (found := await read(after)) is not None:
            after, batch = found
            yield batch
        if not await wait(after):
            return
