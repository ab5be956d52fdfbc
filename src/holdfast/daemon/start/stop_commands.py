"""The `stop_cmd` of a process: run before the process is signalled, once per end, bounded in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack

from holdfast.daemon.core.log import note
from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.daemon.listener.accepting import CallerAncestry
from holdfast.errors import HoldfastError
from holdfast.model.lifecycle import Running, Stopping
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.places.base import ExecutionPlace
from holdfast.secrets.environment import known_forms
from holdfast.settings import Settings

#: Characters of the output of a failed command that are logged, from its end.
_LOGGED_OUTPUT = 500


class StopCommands:
    def __init__(
        self,
        place_of: Callable[[HeldProcess], ExecutionPlace],
        settings: Settings,
        background: BackgroundTasks,
        ancestry: CallerAncestry,
    ) -> None:
        self._place_of = place_of
        self._ancestry = ancestry
        self._background = background
        self._settings = settings
        self._under_way: dict[ProcessId, asyncio.Task[None]] = {}
        #: The last run that it was run for.
        self._done_for: dict[ProcessId, int] = {}

    def concerns(self, process: HeldProcess) -> bool:
        """Whether there is something to run, or to wait for, before the process is signalled."""
        if process.meta.stop_cmd is None or not isinstance(process.state, (Running, Stopping)):
            return False
        return process.id in self._under_way or self._done_for.get(process.id) != process.run

    def begin(self, process: HeldProcess, limit: float) -> asyncio.Task[None]:
        """Run it for at most `limit` seconds, or join the run under way. Never fails: errors are logged."""
        task = self._under_way.get(process.id)
        if task is None:
            self._done_for[process.id] = process.run
            task = self._under_way[process.id] = self._background.start(self._run(process, limit), "stop_cmd")
            task.add_done_callback(lambda _: self._under_way.pop(process.id, None))
        return task

    def forget(self, process_id: ProcessId) -> None:
        self._done_for.pop(process_id, None)

    async def _run(self, process: HeldProcess, limit: float) -> None:
        try:
            async with asyncio.timeout(limit):
                code, output = await self._call(process)
            if code != 0:
                note("stop-cmd-failed", process=process.id, code=code, output=output[-_LOGGED_OUTPUT:])
        except TimeoutError:
            note("stop-cmd-failed", process=process.id, why=f"not done after {limit:g} s")
        except (OSError, ValueError, KeyError, TypeError, HoldfastError) as failed:
            note("stop-cmd-failed", process=process.id, why=failed)

    async def _call(self, process: HeldProcess) -> tuple[int, str]:
        """Exit code and output of the command. When it is cancelled, its process group is killed."""
        assert process.meta.stop_cmd is not None
        place = self._place_of(process)
        spec = await asyncio.to_thread(place.spec, process.id)
        env = {**spec["env"], "HOLDFAST_PID": str(process.pid)}
        argv = await place.shell_argv(process.meta.stop_cmd, self._settings.shell, env)
        with ExitStack() as helping:

            def on_start(pid: int) -> None:
                if place.key is None:  # one in another place cannot call this daemon
                    helping.enter_context(self._ancestry.helping(pid, process))

            code, text = await place.run_helper(argv, {**spec, "env": env}, on_start)
        from holdfast.secrets.redact import redact

        return code, text if code == 0 else await asyncio.to_thread(lambda: redact(text, known_forms(env)))
