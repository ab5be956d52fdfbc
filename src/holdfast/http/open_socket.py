"""A WebSocket of texts for as long as both sides are there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from holdfast.http.problems import Gone
from holdfast.http.request import Request
from holdfast.http.socket import RESTARTING, Socket


async def serve(request: Request, socket: Socket, *works: Coroutine[Any, Any, None]) -> None:
    """Until one of the works is done or fails, or the daemon goes."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait({*tasks, request.stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        await socket.close(RESTARTING if request.stopping.done() else 1000)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def until_gone(socket: Socket) -> None:
    """For a socket on which the client has nothing to say. Raises Gone."""
    try:
        while True:
            await socket.receive_text()
    except Gone:
        return
