"""What a process wants to be told before it is signalled: its `stop_cmd`, run once per end and bounded in time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress
from typing import Any

from holdfast.daemon import wanted
from holdfast.daemon.chores import Chores
from holdfast.daemon.kin import Kin
from holdfast.daemon.logbook import note
from holdfast.errors import HoldfastError
from holdfast.model.ids import ProcessId
from holdfast.model.lifecycle import Running, Stopping
from holdfast.model.process import Process
from holdfast.secrets.environment import known_forms
from holdfast.secrets.redact import redact
from holdfast.settings import Settings
from holdfast_keeper import bundle

#: Of what a command that failed had to say, the log gets the end.
_SAID_AT_MOST = 500
_LAST_WORDS = 0.2


class StopCommands:
    def __init__(self, place: str, settings: Settings, chores: Chores, kin: Kin) -> None:
        self._place = place
        self._kin = kin
        self._chores = chores
        self._settings = settings
        self._under_way: dict[ProcessId, asyncio.Task[None]] = {}
        #: In which run they were told last.
        self._told: dict[ProcessId, int] = {}

    def concerns(self, process: Process) -> bool:
        """Whether there is something to run, or to wait for, before the process is signalled."""
        if process.meta.stop_cmd is None or not isinstance(process.state, (Running, Stopping)):
            return False
        return process.id in self._under_way or self._told.get(process.id) != process.run

    def begin(self, process: Process, limit: float) -> asyncio.Task[None]:
        """Run it for at most `limit` seconds, or join who runs it already. Never fails: what goes wrong is logged."""
        task = self._under_way.get(process.id)
        if task is None:
            self._told[process.id] = process.run
            task = self._under_way[process.id] = self._chores.start(self._run(process, limit), "stop_cmd")
            task.add_done_callback(lambda _: self._under_way.pop(process.id, None))
        return task

    def forget(self, process_id: ProcessId) -> None:
        self._told.pop(process_id, None)

    async def _run(self, process: Process, limit: float) -> None:
        try:
            async with asyncio.timeout(limit):
                code, said = await self._call(process)
            if code != 0:
                note("stop-cmd-failed", process=process.id, code=code, said=said[-_SAID_AT_MOST:])
        except TimeoutError:
            note("stop-cmd-failed", process=process.id, why=f"not done after {limit:g} s")
        except (OSError, ValueError, KeyError, TypeError, HoldfastError) as failed:
            note("stop-cmd-failed", process=process.id, why=failed)

    async def _call(self, process: Process) -> tuple[int, str]:
        """Exit code and output of the command. When it is given up, its process group ends."""
        assert process.meta.stop_cmd is not None
        spec = await asyncio.to_thread(self._spec, process.id)
        env = {**spec["env"], "HOLDFAST_PID": str(process.pid)}
        argv = wanted.through_shell(process.meta.stop_cmd, None, self._settings, env)
        child = await asyncio.create_subprocess_exec(
            *argv,
            cwd=spec["cwd"],
            env=env,
            umask=spec["umask"],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        with self._kin.helping(child.pid, process):
            code, text = await _heard_out(child)
        return code, text if code == 0 else await asyncio.to_thread(_masked, text, env)

    def _spec(self, process_id: ProcessId) -> dict[str, Any]:
        directory = bundle.find(self._place, process_id)
        with open(f"{directory}/{bundle.SPEC}", "rb") as file:
            return dict(json.load(file))


def _masked(text: str, env: dict[str, str]) -> str:
    """For the daemon's log, where no secret belongs."""
    return redact(text, known_forms(env))


async def _heard_out(child: asyncio.subprocess.Process) -> tuple[int, str]:
    assert child.stdout is not None
    said = bytearray()
    reader = asyncio.ensure_future(_read(child.stdout, said))
    try:
        code = await child.wait()
        await asyncio.wait({reader}, timeout=_LAST_WORDS)  # somebody may keep its output open
        return code, said.decode(errors="replace")
    finally:
        reader.cancel()
        if child.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)


async def _read(stream: asyncio.StreamReader, said: bytearray) -> None:
    while data := await stream.read(1 << 16):
        said += data
        del said[: -_SAID_AT_MOST * 4]
