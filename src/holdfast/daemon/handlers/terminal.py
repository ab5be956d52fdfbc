"""resize, screen, attached: operations on processes that have a terminal."""

from __future__ import annotations

import time

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import NoTerminal, NotNow, from_keeper
from holdfast.model.events import Event
from holdfast.model.process import HeldProcess
from holdfast.ops.processes import Attached, Resize, ShowScreen
from holdfast.places.keeper_link import Refused
from holdfast.records import replace


async def resize(context: DaemonContext, call: Call, ask: Resize) -> Message:
    """Replies when the terminal has the size. A process between two runs gets it in its next run."""
    process = _with_terminal(context, ask.process)
    async with context.screens.resizing(process, ask.cols, ask.rows):
        try:
            if not process.is_restarting:
                await context.keeper_of(process).request("resize", id=process.id, cols=ask.cols, rows=ask.rows)
        except Refused as refused:
            raise from_keeper(refused.code, refused.message) from refused
        if (now := context.registry.get(process.id)) is not None:
            context.supervisor.show(replace(now, cols=ask.cols, rows=ask.rows))
    return {}


async def screen(context: DaemonContext, call: Call, ask: ShowScreen) -> Message:
    """What the terminal shows now, up to which byte of output, and whether some output was left out."""
    process = _with_terminal(context, ask.process, instead="holdfast logs")
    shown = await context.screens.show(process, ask.ansi)
    return {
        "screen": {"id": process.id, **shown["picture"], "at": shown["at"], "gap": shown["gap"]},
        "process": context.show(context.registry.get(process.id) or process),
    }


async def attached(context: DaemonContext, call: Call, ask: Attached) -> Message:
    """Replies when the process has ended. Until then, or until it is given up, the client's terminal is attached."""
    process = _with_terminal(context, ask.process)
    async with context.screens.attach(process, ask.from_):
        try:
            with context.clients.attached(process.id, call.by):
                _record(context, process, "attached", call.by)
                await context.registry.wait_ended(process.id)
        finally:
            _record(context, process, "detached", call.by)
    return {}


def _with_terminal(context: DaemonContext, name: str, instead: str | None = None) -> HeldProcess:
    process = context.registry.identify(name)
    if not process.meta.pty:
        raise NoTerminal(f"{process.id} has no terminal", next=f"{instead} {process.id}" if instead else None)
    if process.is_queued:
        raise NotNow(f"{process.id} waits to be started", next="holdfast queue")
    return process


def _record(context: DaemonContext, process: HeldProcess, what: str, by: str) -> None:
    """That a client attached or detached. What is typed is not recorded."""
    now = context.registry.get(process.id)
    if now is not None and now.is_active:
        fields = {"id": now.id, "name": now.meta.name, "session": now.meta.session, "task": now.meta.task, "by": by}
        context.store.record_soon([Event(f"process.{what}", time.time(), fields)])
