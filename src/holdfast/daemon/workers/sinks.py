"""Delivery to sinks: one lane for each sink of the configuration, which is read again when the file changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence

from holdfast.daemon.core.log import note
from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.daemon.workers.sink_lane import MakeMessage, SinkLane, SinkWorker
from holdfast.errors import BadValue
from holdfast.model.events import StoredEvent
from holdfast.model.notices.sinks import Sink
from holdfast.settings import read_settings
from holdfast.store.store import Store

#: Sinks that send at the same time.
_AT_ONCE = 4
_REFRESH_INTERVAL = 10.0
#: How long messages that are being sent may take when the daemon stops.
_DRAIN_BUDGET = 2.0

_Stamp = tuple[int, int, int] | None


class SinkManager:
    def __init__(
        self, sinks: Sequence[Sink], config: str, store: Store, background: BackgroundTasks, environ: Mapping[str, str]
    ) -> None:
        self._config = config
        self._store = store
        self._background = background
        self._environ = environ
        self._stamp = _stamp(config)
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._lanes: dict[str, SinkLane] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._make_message: MakeMessage | None = None
        #: Why the current configuration file is not used; None if it is.
        self.trouble: str | None = None
        self.all: dict[str, Sink] = {}
        self._configure(sinks)

    def start(self, make_message: MakeMessage) -> None:
        """Start sending, beginning with messages from before the start."""
        self._make_message = make_message
        self._configure(list(self.all.values()))
        self._background.start(self._refresh_often(), "sinks")

    def wake(self) -> None:
        for lane in self._lanes.values():
            lane.wake()

    def worker_of(self, sink: Sink) -> SinkWorker:
        """The sender of a sink."""
        return self._lanes[sink.name].worker

    async def refresh(self) -> None:
        """Apply a changed configuration file. A file that cannot be read changes nothing."""
        stamp = _stamp(self._config)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            settings = await asyncio.to_thread(read_settings, self._config)
        except BadValue as refused:
            self.trouble = refused.message
            note("sinks-config-refused", why=refused.message)
            return
        self.trouble = None
        self._configure(settings.sinks)
        note("sinks-configured", names=",".join(self.all) or "none")

    async def close(self) -> None:
        """Send nothing more. Messages that are being sent may end."""
        for lane in self._lanes.values():
            lane.finish()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=_DRAIN_BUDGET)

    async def _refresh_often(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_INTERVAL)
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
            elif self._make_message is not None:
                self._start_lane(sink, self._make_message)
        self._listen()

    def _listen(self) -> None:
        """To the events of the store, as long as there are lanes."""
        listeners = self._store.on_events
        if self._lanes and self._wake_for not in listeners:
            listeners.append(self._wake_for)
        elif not self._lanes and self._wake_for in listeners:
            listeners.remove(self._wake_for)

    def _start_lane(self, sink: Sink, make_message: MakeMessage) -> None:
        lane = SinkLane(sink, self._store, SinkWorker(self._environ), self._slots, make_message)
        self._lanes[sink.name] = lane
        self._tasks[sink.name] = self._background.start(lane.run(), f"sink {sink.name}")

    def _wake_for(self, numbered: list[StoredEvent]) -> None:
        if any(event.notice is not None or _is_approval(event) for event in numbered):
            self.wake()


def _is_approval(event: StoredEvent) -> bool:
    return bool(event.envelope["type"] == "approval.requested")


def _stamp(path: str) -> _Stamp:
    """Differs when the file changed; None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
