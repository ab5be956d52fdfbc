"""The daemon's line to the screens process: one question at a time, in the order they are asked.

It is started when it is needed and ended when nothing was asked of it for a while. If it dies over a question, the
question is asked once more of a new one; output that brings it down again and again is left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import sys
from typing import Any

from holdfast.daemon.logbook import note
from holdfast.errors import HoldfastError, Unsupported
from holdfast.model.ids import ProcessId

_PACKAGE = "pyghostty"
_LIBRARY = "_lib/libghostty-vt.so"
#: Longer than any question takes; whoever takes longer hangs.
_PATIENCE = 10.0
_IDLE = 600.0
_MOST_DEATHS = 2
_LONGEST_ANSWER = 16 << 20

#: Without site packages, to start in a few milliseconds.
_BOOT = """\
import sys
sys.path.insert(0, sys.argv.pop(1))
from holdfast.screen.__main__ import main
main(sys.argv[1:])
"""

Message = dict[str, Any]


class Undrawable(HoldfastError):
    """The emulator does not survive what this process wrote."""


class ScreenLink:
    def __init__(self, place: str, directory: str, environ: dict[str, str]) -> None:
        self._place = place
        self._directory = directory
        self._environ = environ
        self._worker: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._deaths: dict[ProcessId, int] = {}
        self._rest: asyncio.TimerHandle | None = None
        self._library = find_library()

    @property
    def is_possible(self) -> bool:
        return self._library is not None

    @property
    def pid(self) -> int | None:
        return self._worker.pid if self._worker is not None else None

    async def ask(self, op: str, process_id: ProcessId, **arguments: object) -> Message:
        """Raises Unsupported without an emulator, Undrawable where it dies of this process, else HoldfastError."""
        line = json.dumps({"op": op, "id": process_id, **arguments}).encode() + b"\n"
        async with self._turn:
            while True:
                if self._deaths.get(process_id, 0) >= _MOST_DEATHS:
                    what = f"what {process_id} wrote brings the emulator down"
                    raise Undrawable(what, next=f"holdfast logs {process_id}")
                answer = await self._ask_once(line)
                if answer is not None:
                    return _checked(answer)
                self._deaths[process_id] = self._deaths.get(process_id, 0) + 1
                note("screens-died", process=process_id, op=op)

    async def warm(self) -> None:
        """Have it ready for the first question."""
        async with self._turn:
            if self._worker is None and self._library is not None:
                await self._start()
                self._rest_later()

    def forget(self, process_id: ProcessId) -> None:
        self._deaths.pop(process_id, None)

    def close(self) -> None:
        """Let go of it for good; it ends by itself."""
        self._library = None
        self._let_go()

    def _let_go(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
        worker, self._worker = self._worker, None
        if worker is not None and worker.stdin is not None:
            worker.stdin.close()

    async def _ask_once(self, line: bytes) -> Message | None:
        """The answer; None when the process died or hung over it. Cancelled in between, it is let go of as well."""
        worker = self._worker or await self._start()
        assert worker.stdin is not None and worker.stdout is not None
        answer = b""
        try:
            worker.stdin.write(line)
            async with asyncio.timeout(_PATIENCE):
                answer = await worker.stdout.readline()
        except (TimeoutError, OSError):
            pass
        finally:
            if not answer.endswith(b"\n"):
                self._end(worker)
        if not answer.endswith(b"\n"):
            return None
        self._rest_later()
        found: Message = json.loads(answer)
        return found

    async def _start(self) -> asyncio.subprocess.Process:
        if self._library is None:
            raise Unsupported("there is no terminal emulator for screens", next=f"pip install {_PACKAGE}")
        path, version = self._library
        source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        self._worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _BOOT, source, path, version, self._place, self._directory),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd="/",
            env=self._environ,
            limit=_LONGEST_ANSWER,
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
            self._let_go()


def find_library() -> tuple[str, str] | None:
    """Where the emulator's library is, and its version; None where it is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    for directory in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = os.path.join(directory, _LIBRARY)
        if os.path.exists(path):
            return path, importlib.metadata.version(_PACKAGE)
    return None


def _checked(answer: Message) -> Message:
    if "error" in answer:
        raise HoldfastError(f"no screen: {answer['error']}", next="holdfast doctor")
    found: Message = answer["ok"]
    return found
