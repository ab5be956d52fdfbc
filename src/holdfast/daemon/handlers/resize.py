"""resize: give a terminal another size."""

from __future__ import annotations

from dataclasses import replace

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.keeper_errors import to_error
from holdfast.errors import NoTerminal
from holdfast.model.ids import ProcessId
from holdfast.ops.processes import Resize
from holdfast.places.keeper_link import Refused


async def handle(context: DaemonContext, call: Call, ask: Resize) -> Message:
    process = context.registry.identify(ask.process)
    cols, rows = ask.cols, ask.rows
    if not process.meta.pty:
        raise NoTerminal(f"{process.id} has no terminal")
    async with context.screens.resizing(process, cols, rows):
        try:
            if not process.is_waiting:
                await context.keeper.request("resize", id=process.id, cols=cols, rows=rows)
        except Refused as refused:
            raise to_error(refused) from refused
        _remember(context, process.id, cols, rows)
    return {}


def _remember(context: DaemonContext, process_id: ProcessId, cols: int, rows: int) -> None:
    process = context.registry.get(process_id)
    if process is not None:
        context.supervisor.show(replace(process, cols=cols, rows=rows))
