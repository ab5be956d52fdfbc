"""Progress of a project that is started or ended, as events for users and programs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

from holdfast.client.process import Process

EventKind: TypeAlias = Literal[
    "waiting",  # for a condition; `seconds` says for how long so far
    "kept",  # runs as the file has it, or has completed
    "replacing",  # runs, but not as the file has it now
    "started",
    "note",  # a note of the daemon about the start
    "ready",
    "completed",  # a one-shot ended with success
    "failed",  # did not start, did not become ready, or did not complete
    "skipped",  # a process that it depends on failed
    "orphan",  # runs, and is not in the file
    "stopping",
    "ended",
    "survived",  # is alive after it was killed
]


class ProjectEvent(NamedTuple):
    """One step of one member. `member` is its name in the file."""

    kind: EventKind
    member: str
    text: str = ""
    process: Process | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        return f"{self.member}: {self.text or self.kind}"

    def to_json(self) -> dict[str, Any]:
        process = self.process
        fields: dict[str, Any] = {"event": self.kind, "member": self.member, "text": self.text or self.kind}
        if self.seconds is not None:
            fields["seconds"] = round(self.seconds, 1)
        return {**fields, "id": process.id if process else None, "process": process.to_json() if process else None}


#: Called with every event, in the thread that called `up`, `down` or `restart`.
OnEvent: TypeAlias = Callable[[ProjectEvent], None]


def ignore(_: ProjectEvent) -> None:
    """An `on_event` that does nothing."""


class EventQueue:
    """Carries events from the threads that do the work to the calling thread."""

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._queue: queue.SimpleQueue[ProjectEvent | None] = queue.SimpleQueue()

    def put(self, event: ProjectEvent) -> None:
        self._queue.put(event)

    def run(
        self, jobs: Iterable[Callable[[], None]], tick: Callable[[], None] | None = None, every: float | None = None
    ) -> None:
        """Run each job in a thread and deliver events until all have ended.

        `tick` is called whenever there was no event for `every` seconds.
        """
        threads = [threading.Thread(target=job, daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        threading.Thread(target=self._close_after, args=(threads,), daemon=True).start()
        while True:
            try:
                event = self._queue.get(timeout=every)
            except queue.Empty:
                assert tick is not None
                tick()
                continue
            if event is None:
                return
            self._on_event(event)

    def _close_after(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join()
        self._queue.put(None)
