"""The daemon's line to the sender of one sink: `python -m holdfast.sinks`, one message at a time.

It is started when there is something to send and let go of when there was nothing for a while. One that dies or hangs
is replaced with the next message; what it was sending counts as not sent, and is tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Mapping

from holdfast.model.sinks import SendResult
from holdfast.sinks.job import Job, to_json

#: Longer than any way of sending takes for itself; whoever takes longer hangs.
PATIENCE = 45.0
_IDLE = 60.0


class SinkLink:
    def __init__(self, environ: Mapping[str, str], patience: float = PATIENCE) -> None:
        self._environ = dict(environ)
        self._patience = patience
        self._worker: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._rest: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        return self._worker.pid if self._worker is not None else None

    async def send(self, job: Job) -> SendResult:
        """What came of it, whatever happens to the sender."""
        async with self._turn:
            try:
                return await self._ask(json.dumps(to_json(job)).encode() + b"\n")
            except OSError as failed:
                return SendResult(False, f"the sender cannot be started: {failed.strerror or failed}")

    def close(self) -> None:
        """Let go of it; it ends by itself."""
        if self._rest is not None:
            self._rest.cancel()
        worker, self._worker = self._worker, None
        if worker is not None and worker.stdin is not None:
            worker.stdin.close()

    async def _ask(self, line: bytes) -> SendResult:
        worker = self._worker if self._worker is not None and self._worker.returncode is None else await self._start()
        assert worker.stdin is not None and worker.stdout is not None
        answer, why = b"", "the sender died over it"
        try:
            async with asyncio.timeout(self._patience):
                worker.stdin.write(line)
                with contextlib.suppress(ConnectionError):
                    await worker.stdin.drain()
                answer = await worker.stdout.readline()
        except TimeoutError:
            why = f"the sender hung for {self._patience:.0f} s"
        finally:
            if not answer.endswith(b"\n"):
                self._end(worker)
        if not answer.endswith(b"\n"):
            return SendResult(False, why)
        self._rest_later()
        return SendResult(**json.loads(answer))

    async def _start(self) -> asyncio.subprocess.Process:
        self._worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "holdfast.sinks"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # what a library says of an address may hold its secrets
            cwd="/",
            env=self._environ,
            start_new_session=True,
        )
        return self._worker

    def _end(self, worker: asyncio.subprocess.Process) -> None:
        self._worker = None
        with contextlib.suppress(ProcessLookupError):
            worker.kill()

    def _rest_later(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
        self._rest = asyncio.get_running_loop().call_later(_IDLE, self._close_idle)

    def _close_idle(self) -> None:
        if not self._turn.locked():
            self.close()
