"""Typing a secret into a process: only by a person, and only where nobody shows it. What was typed is kept nowhere."""

from __future__ import annotations

import asyncio

from holdfast.daemon.core.context import Call, DaemonContext
from holdfast.errors import Denied, NotNow
from holdfast.model import prompts
from holdfast.model.process import HeldProcess
from holdfast.ops.processes import Send

#: A program turns the echo off around the time it asks: whoever is quick waits for that.
_PATIENCE = 2.0
_PAUSE = 0.05


async def check(context: DaemonContext, call: Call, ask: Send, process: HeldProcess) -> bool:
    """Whether it is a secret that is typed. Raises Denied for a model, NotNow where it would be shown."""
    if not ask.secret:
        return False
    if call.is_strict:
        raise Denied("a secret is typed by a person", next=f"ask the user for: holdfast send {process.id} --secret")
    if not ask.even_if_echoed:
        await _until_hidden(context, process)
    return True


async def note(context: DaemonContext, call: Call, process: HeldProcess) -> None:
    """That it was done, by whom, and not what."""
    await context.audit.note("secret.typed", by=call.owner, process=process.id, session=process.meta.session)


async def _until_hidden(context: DaemonContext, process: HeldProcess) -> None:
    until = asyncio.get_running_loop().time() + _PATIENCE
    while not await _hides(context, process):
        if asyncio.get_running_loop().time() > until:
            what = f"{process.id} shows what is typed into it now"
            raise NotNow(what, next="wait until it asks for a secret, or --even-if-echoed")
        await asyncio.sleep(_PAUSE)


async def _hides(context: DaemonContext, process: HeldProcess) -> bool:
    """A terminal whose settings are unknown now does not."""
    terminal = await context.place.terminal(process)
    return not process.meta.pty or (terminal is not None and prompts.hides(terminal))
