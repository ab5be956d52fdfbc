"""What the model has seen of each process, so that the same is not shown to it again. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.client.process import Process
    from holdfast.tools.output import Shown

_MOST = 1000
#: Ranges of shown output of one process; of more, the oldest are forgotten.
_MOST_RANGES = 100
_FIRST_WAIT, _LONGEST_WAIT = 10, 180
#: A process that has run for long is worth a look after a tenth of its age.
_OF_AGE = 0.1


class _SeenProcess:
    __slots__ = ("state", "size", "ranges", "polls", "asked_at")

    def __init__(self) -> None:
        self.state: object = None
        self.size = 0
        #: The bytes of the log that were shown, in order, none twice.
        self.ranges: list[tuple[int, int]] = []
        self.polls = 0
        self.asked_at = 0.0


class SeenOutput:
    def __init__(self) -> None:
        self._processes: dict[str, _SeenProcess] = {}
        self._notes: set[str] = set()

    def new_notes(self, notes: Iterable[str]) -> list[str]:
        """Those of these notes that were not shown before: what holds for every start is said with the first."""
        new = [note for note in notes if note not in self._notes]
        if len(self._notes) < _MOST:
            self._notes.update(new)
        return new

    def polled(self, process: Process) -> bool:
        """Record a poll; whether nothing has changed since the last one."""
        seen = self._of(process)
        state = (
            *(process.status, process.reason, process.output_bytes, process.restarts),
            *(process.ready, process.stalled, bool(process.needs_input)),
        )
        is_unchanged = seen.state == state
        seen.polls = seen.polls + 1 if is_unchanged else 0
        seen.state = state
        return is_unchanged

    def shown(self, process: Process, shown: Shown) -> int:
        """Record that output was shown; how many bytes behind the last that was shown."""
        if shown.is_complete:
            self.range_shown(process, shown.start, shown.end)
        seen = self._of(process)
        before = seen.size
        seen.size = max(before, shown.end, process.output_bytes if shown.end >= shown.total else 0)
        return seen.size - before

    def range_shown(self, process: Process, start: int, end: int) -> None:
        seen = self._of(process)
        apart = [one for one in seen.ranges if one[1] < start or one[0] > end]
        touching = [one for one in seen.ranges if one not in apart]
        joined = min([start, *(one[0] for one in touching)]), max([end, *(one[1] for one in touching)])
        seen.ranges = sorted([*apart, joined])[-_MOST_RANGES:]

    def seen_bytes(self, process: Process) -> int:
        """Up to where the output was shown."""
        return self._of(process).size

    def first_unseen(self, process: Process, offset: int = 0) -> int:
        """The first byte from `offset` on that was not shown."""
        return next((end for start, end in self._of(process).ranges if start <= offset < end), offset)

    def question_shown(self, process: Process) -> None:
        self._of(process).asked_at = _asked_at(process)

    def has_new_question(self, process: Process) -> bool:
        """Whether it waits for input that no wait has reported."""
        return _asked_at(process) > self._of(process).asked_at

    def questions_shown_until(self, processes: Iterable[Process]) -> float:
        """Questions of these processes after this time are new."""
        known = list(processes)
        is_new = any(map(self.has_new_question, known))
        return 0.0 if is_new else max((self._of(one).asked_at for one in known), default=0.0)

    def suggested_wait(self, process: Process, uptime: float) -> int:
        """Seconds until the next look is worthwhile: longer with every unchanged poll, and the longer it runs."""
        wait = _FIRST_WAIT * 2 ** min(10, max(0, self._of(process).polls - 1))
        return int(min(_LONGEST_WAIT, max(wait, _OF_AGE * uptime)))

    def _of(self, process: Process) -> _SeenProcess:
        found = self._processes.pop(process.id, None) or _SeenProcess()
        self._processes[process.id] = found
        while len(self._processes) > _MOST:
            del self._processes[next(iter(self._processes))]
        return found


def _asked_at(process: Process) -> float:
    return float(process.needs_input["since"]) if process.needs_input is not None else 0.0
