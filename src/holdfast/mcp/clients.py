"""Connections besides those of the tools: bound to a session as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.client.aio import AsyncClient
from holdfast.tools.door import open_client as strict_client


@asynccontextmanager
async def open_client(session: str) -> AsyncIterator[AsyncClient]:
    """Connects with the first question. Raises HoldfastError with whatever is asked."""
    client = strict_client(session, None, None, None)
    try:
        yield client
    finally:
        await client.close()
