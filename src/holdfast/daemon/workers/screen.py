"""The screen worker: draws what terminals show, one request at a time.

A request over which it dies or hangs is repeated once in a new process. After two such deaths the screen of that
process is given up.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable

from holdfast.daemon.workers.worker import Message, Worker, WorkerDied, WorkerLaunch, isolated
from holdfast.errors import HoldfastError, Unsupported
from holdfast.extras import package_hint
from holdfast.model.process import ProcessId

_PACKAGE = "pyghostty"
_LIBRARY = "_lib/libghostty-vt.so"
_MOST_DEATHS = 2


class ScreenBroken(HoldfastError):
    """The emulator dies over what this process wrote."""


class ScreenWorker(Worker):
    name = "screen"

    def __init__(
        self, place: str, directory_of: Callable[[ProcessId], str], directory: str, environ: dict[str, str]
    ) -> None:
        super().__init__(environ)
        self._places = place, directory
        self._directory_of = directory_of
        self._deaths: dict[ProcessId, int] = {}
        self._library = find_library()

    @property
    def is_possible(self) -> bool:
        """Whether there is an emulator."""
        return self._library is not None

    def launch(self) -> WorkerLaunch:
        if self._library is None:
            raise Unsupported("there is no terminal emulator for screens", next=package_hint(_PACKAGE))
        return WorkerLaunch(isolated("holdfast.screen", self._library, library_version(), *self._places, site=False))

    async def ask(self, op: str, process_id: ProcessId, **arguments: object) -> Message:
        """Raises Unsupported without an emulator, ScreenBroken, else HoldfastError."""
        while self._deaths.get(process_id, 0) < _MOST_DEATHS:
            try:
                reply = await self.request({"op": op, "id": process_id, **self._elsewhere(process_id), **arguments})
            except WorkerDied:
                self._deaths[process_id] = self._deaths.get(process_id, 0) + 1
                continue
            if "error" in reply:
                raise HoldfastError(f"no screen: {reply['error']}", next="holdfast doctor")
            return reply
        what = f"what {process_id} wrote brings the emulator down"
        raise ScreenBroken(what, next=f"holdfast logs {process_id}")

    def _elsewhere(self, process_id: ProcessId) -> dict[str, str]:
        """Where its log is, if it is not that of this machine."""
        place = self._directory_of(process_id)
        return {"place": place} if place != self._places[0] else {}

    async def warm(self) -> None:
        """Have the process ready for the first request."""
        with self.in_use():
            await self.running()

    def forget(self, process_id: ProcessId) -> None:
        self._deaths.pop(process_id, None)


def find_library() -> str | None:
    """Where the emulator's library is; None where it is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    for directory in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = os.path.join(directory, _LIBRARY)
        if os.path.exists(path):
            return path
    return None


def library_version() -> str:
    from importlib.metadata import version  # takes as long as twenty modules

    return version(_PACKAGE)
