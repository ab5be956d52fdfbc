"""process: what can be done with a background process, and with the session's news."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from signal import SIGKILL
from typing import TYPE_CHECKING

from holdfast.client.signals import signal_number
from holdfast.tools import looking, waiting
from holdfast.tools.context import Context, about
from holdfast.tools.envelope import Answer, Refusal, answer

if TYPE_CHECKING:
    from holdfast.client.process import KillResult, Process
    from holdfast.tools.arguments import ProcessCall

#: A tree that takes longer to end is said to be ending.
_KILL_WITHIN = 30.0
_LARGEST_WINDOW = 10_000


async def process(context: Context, call: ProcessCall) -> Answer:
    """Raises HoldfastError, Refusal."""
    made = await _ACTIONS[call.action](context, call)
    if call.notes:
        made["note"] = "; ".join([*([made["note"]] if "note" in made else []), *call.notes])
    return made


async def _kill(context: Context, call: ProcessCall) -> Answer:
    """Politely first; with `KILL` as data by force at once."""
    wanted = (call.data or "").strip()
    if wanted and signal_number(wanted) != SIGKILL:
        raise Refusal("bad_arguments", "kill takes no signal but KILL", "use action='signal' to send one signal")
    found = await context.find(call.ids[0])
    if found.status == "ended":
        return await _gone(context, found)
    try:
        async with asyncio.timeout(_KILL_WITHIN):
            results = await context.client.kill(found.id, grace=0.0 if wanted else None)
    except TimeoutError:
        return about(found, "it takes long to end; look again later", reason="ending")
    return _killed(await context.client.inspect(found.id), results[0])


def _killed(process: Process, result: KillResult) -> Answer:
    forced = True if result.forced else None
    if not result.survivors:
        return about(process, forced=forced)
    return about(process, "some of its tree is still alive; tell the user", survivors=result.survivors, forced=forced)


async def _signal(context: Context, call: ProcessCall) -> Answer:
    number = signal_number((call.data or "").strip() or _missing(call, "the name of a signal"))
    found = await context.find(call.ids[0])
    if found.status == "ended":
        return await _gone(context, found)
    results = await context.client.kill(found.id, signal=number)
    return about(await context.client.inspect(found.id), sent=results[0].sent)


async def _write(context: Context, call: ProcessCall) -> Answer:
    if not call.data and call.action == "write":
        _missing(call, "the text to write")
    found = await context.find(call.ids[0])
    if found.status == "ended":
        return await _gone(context, found)
    data = (call.data or "").encode(errors="surrogatepass")
    is_close = call.action == "close"
    value = await context.client.send(
        found.id, data, enter=call.action == "submit", eof=is_close, **context.approving()
    )
    if value.get("status") == "already_exited":
        return await _gone(context, await context.client.inspect(found.id))
    next = "what it makes of it: process(action='wait', data='output')"
    now = await context.client.inspect(found.id)  # what it asked may be answered by now
    return about(now, next, reason="stdin_closed" if is_close else "written", bytes_written=value.get("written"))


async def _resize(context: Context, call: ProcessCall) -> Answer:
    cols, _, rows = (call.data or "").lower().replace(" ", "").partition("x")
    if not (cols.isdecimal() and rows.isdecimal() and 0 < int(cols[:9]) <= _LARGEST_WINDOW):
        _missing(call, "a size such as 120x30")
    if not 0 < int(rows[:9]) <= _LARGEST_WINDOW:
        _missing(call, "a size such as 120x30")
    found = await context.find(call.ids[0])
    if found.status == "ended":
        return await _gone(context, found)
    await context.client.resize(found.id, int(cols), int(rows))
    return about(found, reason="resized")


async def _restart(context: Context, call: ProcessCall) -> Answer:
    found = await context.find(call.ids[0])
    return about(await context.client.restart(found.id, **context.approving()), reason="restarted")


async def _transfer(context: Context, call: ProcessCall) -> Answer:
    to = call.data or _missing(call, "the session that is to own it")
    found = await context.find(call.ids[0])
    moved = await context.client.transfer(found.id, to)
    return about(moved, "it and its news belong to that session now", reason="transferred", owner=to)


async def _ack(context: Context, call: ProcessCall) -> Answer:
    ids = (call.data or "").replace(",", " ").split() or _missing(call, "the ids of notices")
    value = await context.client.ack(*ids[:1000], session=context.session)
    unknown = value.get("unknown") or None
    return answer("ok", "acknowledged", acked=value.get("acked"), known=value.get("known") or None, unknown=unknown)


async def _gone(context: Context, process: Process) -> Answer:
    """It had ended before: no error, and nothing was done."""
    made = await looking.end_of(context, process, status="already_exited")
    made["next"] = "nothing was done: it had ended before"
    return made


def _missing(call: ProcessCall, what: str) -> str:
    """Always raises."""
    raise Refusal("bad_arguments", f"{call.action} needs data: {what}", f"call again with data: {what}")


_ACTIONS: dict[str, Callable[[Context, ProcessCall], Awaitable[Answer]]] = {
    "list": looking.list_all,
    "poll": looking.poll,
    "log": looking.log,
    "screen": looking.screen,
    "search": looking.search,
    "wait": waiting.wait,
    "inbox": waiting.inbox,
    "ack": _ack,
    "kill": _kill,
    "signal": _signal,
    "write": _write,
    "submit": _write,
    "close": _write,
    "resize": _resize,
    "restart": _restart,
    "transfer": _transfer,
}
