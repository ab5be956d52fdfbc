"""Delivery to the outside: a lane for each sink of the configuration, which is looked at again when it changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence

from holdfast.daemon.chores import Chores
from holdfast.daemon.logbook import note
from holdfast.daemon.sink_lane import Lane, MakeJob
from holdfast.daemon.sink_link import SinkLink
from holdfast.errors import BadValue
from holdfast.model.events import StoredEvent
from holdfast.model.sinks import Sink
from holdfast.settings import read_settings
from holdfast.store.store import Store

#: Sinks that send at the same time.
_AT_ONCE = 4
_LOOK_AGAIN = 10.0
#: What is under way when the daemon stops may take so long to end well.
_FAREWELL = 2.0

_Stamp = tuple[int, int, int] | None


class Sinks:
    def __init__(
        self, sinks: Sequence[Sink], config: str, store: Store, chores: Chores, environ: Mapping[str, str]
    ) -> None:
        self._config = config
        self._store = store
        self._chores = chores
        self._environ = environ
        self._stamp = _stamp(config)
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._lanes: dict[str, Lane] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._make_job: MakeJob | None = None
        #: Why the configuration as it stands now is not followed; None mostly.
        self.trouble: str | None = None
        self.all: dict[str, Sink] = {}
        self._configure(sinks)
        store.on_events.append(self._happened)

    def start(self, make_job: MakeJob) -> None:
        """Begin to send, with what was left over from before."""
        self._make_job = make_job
        self._configure(list(self.all.values()))
        self._chores.start(self._look_after(), "sinks")

    def wake(self) -> None:
        for lane in self._lanes.values():
            lane.wake()

    def link_of(self, sink: Sink) -> SinkLink:
        """Its sender, also for what does not come from the outbox."""
        return self._lanes[sink.name].link

    async def refresh(self) -> None:
        """Take over what was changed in the configuration. What cannot be read leaves everything as it is."""
        stamp = _stamp(self._config)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            settings = await asyncio.to_thread(read_settings, self._config)
        except BadValue as refused:
            self.trouble = refused.message
            note("sinks-unchanged", why=refused.message)
            return
        self.trouble = None
        self._configure(settings.sinks)
        note("sinks", names=",".join(self.all) or "none")

    async def close(self) -> None:
        """Send nothing more. What is under way may end."""
        for lane in self._lanes.values():
            lane.finish()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=_FAREWELL)

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_AGAIN)
            await self.refresh()

    def _configure(self, sinks: Iterable[Sink]) -> None:
        self.all = {sink.name: sink for sink in sinks}
        self._store.sinks = tuple(self.all.values())
        for name in self._lanes.keys() - self.all.keys():
            self._lanes.pop(name).finish()
            self._tasks.pop(name, None)
        for name, sink in self.all.items():
            if (lane := self._lanes.get(name)) is not None:
                lane.wake(sink)
            elif self._make_job is not None:
                self._begin(sink, self._make_job)

    def _begin(self, sink: Sink, make_job: MakeJob) -> None:
        lane = Lane(sink, self._store, SinkLink(self._environ), self._slots, make_job)
        self._lanes[sink.name] = lane
        self._tasks[sink.name] = self._chores.start(lane.run(), f"sink {sink.name}")

    def _happened(self, numbered: list[StoredEvent]) -> None:
        if self._lanes and any(event.notice is not None or _asks(event) for event in numbered):
            self.wake()


def _asks(event: StoredEvent) -> bool:
    return bool(event.envelope["type"] == "approval.requested")


def _stamp(path: str) -> _Stamp:
    """Changes when the file does; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
