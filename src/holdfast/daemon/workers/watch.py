"""The watch worker: which lines of a stream match a set of patterns. Many scans run at once and take turns.

The worker marks in shared memory which scan it is at. A scan that it dies over three times is given up; the others are
repeated in a new process and lose nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

from holdfast.daemon.workers.worker import Message, Worker, WorkerDied, WorkerLaunch, isolated
from holdfast.errors import BadValue, HoldfastError
from holdfast.model.notices.watching import WatchMatch
from holdfast.model.process import ProcessId
from holdfast.wire.worker import CurrentRequest, KnownValues

_MOST_DEATHS = 3
_MOST_FAILED_STARTS = 5
_PAUSE = 0.05


class WatchBroken(HoldfastError):
    """The watch worker dies over this watch again and again."""


class WatchScan(NamedTuple):
    """The matches up to byte `upto`, where the next scan goes on; `complete` when there is no more output to scan.

    Of more than 1,000 matches (or 256 KiB of them) the first ones and the newest are listed; `more` counts the others.
    """

    matches: list[WatchMatch]
    upto: int
    complete: bool
    more: int = 0
    is_late: bool = False
    """Whether it had to be repeated in another process."""


class WatchWorker(Worker):
    name = "watch"
    is_serial = False

    def __init__(self, place: str, directory_of: Callable[[ProcessId], str], environ: dict[str, str]) -> None:
        super().__init__(environ)
        self._place = place
        self._directory_of = directory_of
        #: The sets of patterns that the process has: they are sent to it once.
        self._known: KnownValues[bool] = KnownValues()
        #: When each scan that waits was requested, oldest first.
        self._requested: dict[object, float] = {}

    @property
    def lag(self) -> float:
        """Seconds since the oldest scan that waits was requested; 0 when none waits."""
        oldest = next(iter(self._requested.values()), None)
        return 0.0 if oldest is None else time.monotonic() - oldest

    def launch(self) -> WorkerLaunch:
        fd = CurrentRequest.create()
        self._known = KnownValues()
        # After a crash over a request the optional engine is left out: it may be the cause.
        plain = ["plain"] if self.was_blamed else []
        arguments = isolated("holdfast.watch", self._place, str(fd), *plain)
        return WorkerLaunch(arguments, (fd,), CurrentRequest(fd))

    def complete(self, message: Message) -> Message:
        left_out = ("literals", "patterns") if message["set"] in self._known else ()
        self._known.use(message["set"], True)
        return {name: value for name, value in message.items() if name not in left_out}

    async def scan(
        self,
        process_id: ProcessId,
        stream: str,
        literals: tuple[str, ...],
        patterns: tuple[str, ...],
        after: int,
        upto: int | None,
        is_final: bool,
    ) -> WatchScan:
        """The lines of a stream that match now and did not match at `after`.

        `is_final`: nothing follows `upto`. Raises BadValue for invalid patterns, WatchBroken.
        """
        message = {"id": process_id, "stream": stream, "after": after, "upto": upto, "final": is_final}
        if (place := self._directory_of(process_id)) != self._place:
            message["place"] = place
        message |= {"set": hash((literals, patterns)), "literals": literals, "patterns": patterns}
        key = object()
        self._requested[key] = time.monotonic()
        try:
            return await self._repeated(message)
        finally:
            del self._requested[key]

    async def _repeated(self, message: Message) -> WatchScan:
        """The reply to a scan, which is repeated while the process dies."""
        deaths, is_late = 0, False
        while True:
            try:
                return _scan(await self.request(message), message["stream"], is_late)
            except WorkerDied as died:
                deaths, is_late = deaths + died.is_blamed, True
            if deaths >= _MOST_DEATHS:
                what = f"the watch of {message['id']} brings the watch process down"
                raise WatchBroken(what, next="start it again with other patterns")
            if self.failed_starts >= _MOST_FAILED_STARTS:
                raise HoldfastError("the watch process does not stay up", next="holdfast doctor")
            await asyncio.sleep(_PAUSE * deaths)  # scans that are not blamed go first


def _scan(reply: Message, stream: str, is_late: bool) -> WatchScan:
    if "error" in reply:
        raise (BadValue if reply["is_bad"] else HoldfastError)(reply["error"])
    matches = [WatchMatch(stream, *match) for match in reply["matches"]]
    return WatchScan(matches, reply["upto"], reply["complete"], reply["more"], is_late)
