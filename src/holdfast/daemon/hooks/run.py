"""One event, one run of a hook: a process of its own, for a limited time, its output in a log."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from typing import Any

from holdfast import light_json
from holdfast.daemon.core.log import note
from holdfast.daemon.hooks.description import Hook

_LARGEST_LOG = 1 << 20
#: Between SIGTERM and SIGKILL.
_GRACE = 2.0


async def run(hook: Hook, envelope: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Returns when it has ended by itself, or was ended after its timeout. Failures are logged."""
    log = _open_log(f"{hook.directory}/hook.log")
    try:
        process = await asyncio.create_subprocess_exec(
            *hook.argv,
            cwd=hook.directory,
            env={**environ, "HOLDFAST_EVENT": str(envelope.get("type")), "HOLDFAST_HOOK": hook.name},
            stdin=asyncio.subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    except OSError as failed:
        note("hook-failed", hook=hook.name, why=failed)
        return
    finally:
        os.close(log)
    try:
        async with asyncio.timeout(hook.timeout):
            with contextlib.suppress(RuntimeError):  # uvloop raises it where the hook ended without reading the event
                await process.communicate(f"{light_json.dumps(dict(envelope))}\n".encode())
            await process.wait()
    except TimeoutError:
        note("hook-too-slow", hook=hook.name, seq=envelope.get("seq"), seconds=hook.timeout)
    finally:
        await _end(process)
    if process.returncode:
        note("hook-failed", hook=hook.name, seq=envelope.get("seq"), code=process.returncode)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End it if it still runs, with its whole session. (Once it is reaped its pid may belong to another process.)"""
    for number, timeout in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, None)):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await process.wait()


def _open_log(path: str) -> int:
    """The log of a hook; it is truncated when it has become too large."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    if os.fstat(fd).st_size > _LARGEST_LOG:
        os.ftruncate(fd, 0)
    return fd
