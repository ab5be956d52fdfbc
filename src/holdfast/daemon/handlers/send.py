"""send: write to the input of a process, press Enter, close it; also secrets, which only the user may type."""

from __future__ import annotations

import asyncio
import binascii
import time
from base64 import b64decode

from holdfast.daemon.approvals import typed_input
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import BadValue, Denied, NotNow, StdinFull, from_keeper
from holdfast.model.probes import prompts
from holdfast.model.process import HeldProcess, LastInput
from holdfast.ops.processes import Send
from holdfast.places.keeper_link import Refused
from holdfast.records import replace

#: A program turns the echo off around the time it asks: a secret waits this long for that.
_ECHO_OFF_TIMEOUT = 2.0
_ECHO_PAUSE = 0.05
#: Seconds to which the time of the last input is exact.
_INPUT_EXACT = 1.0


async def handle(context: DaemonContext, call: Call, ask: Send) -> Message:
    """The keeper has accepted the data. A process that has ended gets nothing, which is no error."""
    process = context.registry.identify(ask.process)
    data = _data(ask, process)
    if process.has_ended:
        return _answer(context, process, 0, None, "already_exited")
    if process.is_queued:
        raise NotNow(f"{process.id} waits to be started and reads nothing", next="holdfast queue")
    if process.is_restarting:
        raise _between_runs(process)
    if ask.secret:
        await _check_secret(context, call, ask, process)
    try:
        async with typed_input.typing(context, call, ask, process, data, ask.at, ends=ask.eof) as (fresh, begin):
            accepted = await context.inputs.write(process.id, fresh, begin) if fresh or not ask.eof else None
            if ask.eof:
                await _close(context, process)
        _record_input(context, process, call.by, data)
        if ask.secret:
            session = process.meta.session
            await context.audit.note("secret.typed", by=call.by, process=process.id, session=session)
    except Refused as refused:
        if refused.code != "ended":
            raise from_keeper(refused.code, refused.message) from refused
        now = await context.registry.wait_run_over(process.id, process.run) or process
        if not now.has_ended:
            raise _between_runs(now) from refused
        return _answer(context, now, 0, None, "already_exited")
    return _answer(context, context.registry.get(process.id) or process, len(data), accepted, "sent")


def _record_input(context: DaemonContext, process: HeldProcess, by: str, data: bytes) -> None:
    """Who typed last. The end of a line answers a prompt; if the process goes on asking, the probe finds that again."""
    now, at = context.registry.get(process.id), time.time()
    if now is None:
        return
    is_answered = now.need is not None and (b"\r" in data or b"\n" in data)
    # Keys come one by one: not each of them is a change of the row.
    is_noted = now.typed is not None and now.typed.by == by and 0 <= at - now.typed.at < _INPUT_EXACT
    if is_answered or not is_noted:
        context.supervisor.show(replace(now, need=None if is_answered else now.need, typed=LastInput(by, at)))


def _between_runs(process: HeldProcess) -> StdinFull:
    return StdinFull(f"{process.id} is between two runs and reads nothing", next="try again when it runs")


async def _close(context: DaemonContext, process: HeldProcess) -> None:
    await context.keeper_of(process).request("close_stdin", id=process.id)
    now = context.registry.get(process.id)
    if now is not None and now.stdin_open:
        context.registry.put(replace(now, stdin_open=False))


def _data(ask: Send, process: HeldProcess) -> bytes:
    try:
        data = b64decode(ask.data, validate=True)
    except (binascii.Error, ValueError):
        raise BadValue("data is not base64") from None
    if ask.enter:
        data += b"\r" if process.meta.pty else b"\n"  # the key of a terminal, the line end of a pipe
    return data


def _answer(context: DaemonContext, process: HeldProcess, written: int, accepted: int | None, status: str) -> Message:
    return {"written": written, "accepted": accepted, "status": status, "process": context.show(process)}


async def _check_secret(context: DaemonContext, call: Call, ask: Send, process: HeldProcess) -> None:
    """Raises Denied for a caller that is bound to a session, NotNow where the terminal would show the secret."""
    if call.is_strict:
        raise Denied("only the user may type a secret", next=f"ask the user for: holdfast send {process.id} --secret")
    until = asyncio.get_running_loop().time() + _ECHO_OFF_TIMEOUT
    while not ask.even_if_echoed and process.meta.pty:
        terminal = await context.place_of(process).terminal(process)
        if terminal is not None and prompts.hides(terminal):
            return
        if asyncio.get_running_loop().time() > until:
            what = f"{process.id} shows what is typed into it now"
            raise NotNow(what, next="wait until it asks for a secret, or --even-if-echoed")
        await asyncio.sleep(_ECHO_PAUSE)
