"""Every hook follows the stream of events from a cursor of its own, one event after the other.

The cursor is on disk and moves when a run is over: after a crash the event that was under way comes again, and none is
left out. A slow hook delays only itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping

from holdfast import files
from holdfast.daemon.core.log import note
from holdfast.daemon.hooks import description
from holdfast.daemon.hooks.description import Hook
from holdfast.daemon.hooks.run import run
from holdfast.daemon.notices.event_stream import GAP, EventStream

#: Between two looks for added, removed or changed hooks.
_REFRESH_INTERVAL = 5.0


class Hooks:
    """The hooks of an instance, in `directory`; the cursor of each is a file in `places`."""

    def __init__(self, directory: str, places: str, stream: EventStream, environ: Mapping[str, str]) -> None:
        self._directory = directory
        self._places = places
        self._stream = stream
        self._environ = environ
        self._running: dict[Hook, asyncio.Task[None]] = {}
        self._logged: set[str] = set()

    async def watch(self) -> None:
        """Run the hooks that are there, for ever."""
        try:
            while True:
                hooks, wrong = await asyncio.to_thread(description.read_all, self._directory)
                self._logged = {self._log(bad.message) for bad in wrong}
                await self._change_to(set(hooks))
                await asyncio.sleep(_REFRESH_INTERVAL)
        finally:
            await self._change_to(set())

    def _log(self, wrong: str) -> str:
        if wrong not in self._logged:
            note("hook-wrong", why=wrong)
        return wrong

    async def _change_to(self, hooks: set[Hook]) -> None:
        gone = [self._running.pop(hook) for hook in self._running.keys() - hooks]
        for task in gone:
            task.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        for hook in hooks - self._running.keys():
            note("hook", name=hook.name, topics=",".join(hook.topics))
            self._running[hook] = asyncio.create_task(self._follow(hook), name=f"hook {hook.name}")

    async def _follow(self, hook: Hook) -> None:
        place = f"{self._places}/{hook.name}"
        async for batch in self._stream.follow(self._begin(place), " ".join(hook.topics)):
            for envelope in batch.events:
                if envelope["type"] == GAP:  # it was away for longer than events are kept
                    note("hook-missed-events", name=hook.name, count=envelope["count"])
                else:
                    await run(hook, envelope, self._environ)
                if "seq" in envelope:
                    _keep(place, envelope["seq"])
            _keep(place, batch.cursor)

    def _begin(self, place: str) -> int:
        """Its cursor; a new hook begins with events from now on."""
        try:
            with open(place) as file:
                return min(int(file.read()), self._stream.newest)
        except (OSError, ValueError):
            _keep(place, self._stream.newest)
            return self._stream.newest


def _keep(place: str, seq: int) -> None:
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        files.replace(place, str(seq).encode())
