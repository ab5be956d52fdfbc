"""Following the output of a process until it has ended, or until nobody can write any more."""

from __future__ import annotations

import asyncio

from holdfast.daemon.room import Message
from holdfast.http.request import Request, SendData
from holdfast.model.ids import ProcessId


async def follow(request: Request, ask: Message, send: SendData, to_exit: bool) -> Message:
    """What `logs` answers at the end. With `to_exit`, descendants that keep the output open are not waited for."""
    if not (ask.get("follow") and to_exit):
        return await request.ask("logs", ask, send)
    reach = -1

    async def watched(stream: str, offset: int, data: bytes) -> None:
        nonlocal reach
        await send(stream, offset, data)
        reach = offset + len(data)

    following = asyncio.ensure_future(request.ask("logs", ask, watched))
    ended = asyncio.ensure_future(request.room.registry.wait_ended(ProcessId(ask["process"])))
    try:
        await asyncio.wait({following, ended}, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            answer = following.result()
            process = await ended  # which may follow the end of its output
            return answer if process is None else {**answer, "process": request.room.show(process)}
    finally:
        for waiting in (following, ended):
            waiting.cancel()
        await asyncio.wait({following, ended})
    return await request.ask("logs", _rest(request, ask, reach), send)


def _rest(request: Request, ask: Message, reach: int) -> Message:
    """What is left to read once it has ended: up to where its output stood then."""
    rest = {**ask, "follow": False}
    if reach >= 0:
        rest["from"] = reach
        rest.pop("lines", None)
    process = request.room.registry.get(ProcessId(ask["process"]))
    if process is not None and not process.meta.split and "from" in rest:
        shown = request.room.show(process)
        end = max(shown["output_bytes"], shown["exit_offset"] or 0)
        rest["bytes"] = max(0, end - rest["from"])
    return rest
