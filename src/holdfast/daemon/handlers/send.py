"""send: write to a process's input, press Enter, close it."""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import replace

from holdfast.daemon.approvals import typed_input, typed_secrets
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.keeper_errors import to_error
from holdfast.errors import BadValue, StdinFull
from holdfast.model.process import HeldProcess
from holdfast.ops.processes import Send
from holdfast.places.keeper_link import Refused


async def handle(context: DaemonContext, call: Call, ask: Send) -> Message:
    """To a process that has ended nothing is written, and that is no error."""
    process = context.registry.identify(ask.process)
    data = _data(ask, process)
    if process.has_ended:
        return _answer(context, process, 0, None, "already_exited")
    if process.is_waiting:
        raise _between_runs(process)
    is_secret = await typed_secrets.check(context, call, ask, process)
    try:
        async with typed_input.typing(context, call, ask, process, data, ask.at, ends=ask.eof) as (fresh, begin):
            accepted = await context.inputs.write(process.id, fresh, begin) if fresh or not ask.eof else None
            if ask.eof:
                await _close(context, process)
        _answered(context, process, data)
        if is_secret:
            await typed_secrets.note(context, call, process)
    except Refused as refused:
        if refused.code != "ended":
            raise to_error(refused) from refused
        now = await context.registry.wait_run_over(process.id, process.run) or process
        if not now.has_ended:
            raise _between_runs(now) from refused
        return _answer(context, now, 0, None, "already_exited")
    return _answer(context, context.registry.get(process.id) or process, len(data), accepted, "sent")


def _answered(context: DaemonContext, process: HeldProcess, data: bytes) -> None:
    """What it asked counts as answered with the end of a line; should it go on asking, that is seen again."""
    now = context.registry.get(process.id)
    if now is not None and now.need is not None and (b"\r" in data or b"\n" in data):
        context.supervisor.show(replace(now, need=None))


def _between_runs(process: HeldProcess) -> StdinFull:
    """Nobody reads now, but soon: whoever has more to say tries again."""
    return StdinFull(f"{process.id} is between two runs and reads nothing", next="try again when it runs")


async def _close(context: DaemonContext, process: HeldProcess) -> None:
    await context.keeper.request("close_stdin", id=process.id)
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
