"""Starts the probes: once for every run of a process that needs one. Other processes cost nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.probes.prompt import may_ask, watch_prompts
from holdfast.daemon.probes.ready import watch_readiness
from holdfast.daemon.probes.stall import watch_stalls
from holdfast.model.probes import readiness
from holdfast.model.process import HeldProcess, ProcessId

_Watch = Callable[[DaemonContext, HeldProcess], Awaitable[None]]
_Run = tuple[str, ProcessId, float | None]


def begin(context: DaemonContext) -> None:
    """Probe all that run now, as after a crash of the daemon, and every run that begins later."""
    probes = _Probes(context)
    for process in context.registry.active():
        probes.look(process)
    signs = (f"ready_{kind}" for kind in readiness.KINDS)
    context.registry.listen(probes.look, "stall", "pty", "stdin", *signs)


class _Probes:
    def __init__(self, context: DaemonContext) -> None:
        self._context = context
        self._under_way: set[_Run] = set()

    def look(self, process: HeldProcess) -> None:
        if process.meta.stall is not None and process.is_up:
            self._start("stall", watch_stalls, process)
        if may_ask(process):
            self._start("prompt", watch_prompts, process)
        if readiness.is_open(process):
            self._start("ready", watch_readiness, process)

    def _start(self, name: str, watch: _Watch, process: HeldProcess) -> None:
        run = (name, process.id, process.started_at)
        if run not in self._under_way:
            self._under_way.add(run)
            self._context.background.start(self._follow(run, watch, process), name)

    async def _follow(self, run: _Run, watch: _Watch, process: HeldProcess) -> None:
        try:
            await watch(self._context, process)
        finally:
            self._under_way.discard(run)
