"""What is told while a project is started or ended: one thing that happened, for people and for programs."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

from holdfast.client.process import Process

Kind: TypeAlias = Literal[
    "waiting",  # for something that is not so yet; `seconds` says for how long
    "kept",  # it runs as the file has it, or has completed
    "replacing",  # it runs, but not as the file has it now
    "started",
    "note",  # what the daemon had to say about the start
    "ready",
    "completed",  # a one-shot ended with success
    "failed",  # it did not start, did not become ready, or did not complete
    "skipped",  # something it needs failed
    "orphan",  # it runs, and is not in the file
    "stopping",
    "ended",
    "survived",  # it was to end, and did not
]


class Happening(NamedTuple):
    """`member` is its name in the file."""

    kind: Kind
    member: str
    text: str = ""
    process: Process | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        return f"{self.member}: {self.text or self.kind}"

    def to_json(self) -> dict[str, Any]:
        process = self.process
        told: dict[str, Any] = {"event": self.kind, "member": self.member, "text": self.text or self.kind}
        if self.seconds is not None:
            told["seconds"] = round(self.seconds, 1)
        return {**told, "id": process.id if process else None, "process": process.to_json() if process else None}


#: Called with every Happening, in the thread that called us.
Tell: TypeAlias = Callable[[Happening], None]


def tell_nobody(_: Happening) -> None:
    pass


class Told:
    """Happenings on their way from many threads to the one that tells them."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._queue: queue.SimpleQueue[Happening | None] = queue.SimpleQueue()

    def put(self, happening: Happening) -> None:
        self._queue.put(happening)

    def close(self) -> None:
        self._queue.put(None)

    def tell_all(self, tick: Callable[[], None] | None = None, every: float | None = None) -> None:
        """Until it is closed. `tick` is called when nothing came for `every` seconds."""
        while True:
            try:
                happening = self._queue.get(timeout=every)
            except queue.Empty:
                assert tick is not None
                tick()
                continue
            if happening is None:
                return
            self._tell(happening)
