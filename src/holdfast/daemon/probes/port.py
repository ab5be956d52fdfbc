"""Ready when a process of the tree listens on a port. Another process that does is named."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.log import note
from holdfast.model.probes import readiness
from holdfast.model.process import HeldProcess

#: Takes the reason why it is not ready.
Report = Callable[[str], None]


async def until_listening(context: DaemonContext, process: HeldProcess, port: int, report: Report) -> None:
    probe = PortProbe(context, process, port)
    attempt = 0
    while (trouble := await probe.trouble()) is not None:
        report(trouble)
        await asyncio.sleep(readiness.pause(attempt))
        attempt += 1


class PortProbe:
    """Whether a process listens on its port. Cheap as long as nothing has changed since the last call."""

    def __init__(self, context: DaemonContext, process: HeldProcess, port: int) -> None:
        self._watch = context.place_of(process).port_watch(process, port)
        self._process = process
        self._port = port
        self._logged: str | None = None

    async def trouble(self, must_be_alone: bool = False) -> str | None:
        """Why it does not listen; None when it does. With `must_be_alone`, another listener is a reason, too."""
        state = await self._watch.look()
        other = readiness.held_by_another(self._port, state.foreign_pid) if state.is_foreign else None
        if other is not None and other != self._logged:
            note("ready-trouble", process=self._process.id, what=other)
        self._logged = other
        if state.is_own and not (must_be_alone and other):
            return None
        return other or readiness.not_listening(self._port)
