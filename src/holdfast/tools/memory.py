"""What the model has seen of each process, so that it is not shown the same again. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.client.process import Process

_MOST = 1000
_FIRST_WAIT, _LONGEST_WAIT = 10, 180
#: What runs long is worth looking at seldom: after a tenth of its age.
_OF_AGE = 0.1


class _Seen:
    __slots__ = ("state", "size", "polls", "asked_at")

    def __init__(self) -> None:
        self.state: object = None
        self.size = 0
        self.polls = 0
        self.asked_at = 0.0


class Memory:
    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._said: set[str] = set()

    def unsaid(self, notes: Iterable[str]) -> list[str]:
        """Of these notes, those that were not made before: what holds for every start is said with the first."""
        new = [note for note in notes if note not in self._said]
        if len(self._said) < _MOST:
            self._said.update(new)
        return new

    def polled(self, process: Process) -> bool:
        """Note a poll; whether all is as it was at the last one."""
        seen = self._of(process)
        state = _state(process)
        is_unchanged = seen.state == state
        seen.polls = seen.polls + 1 if is_unchanged else 0
        seen.state = state
        return is_unchanged

    def shown(self, process: Process, size: int | None = None) -> int:
        """Note that the output was shown; how many bytes of it are new since the last time."""
        seen = self._of(process)
        now = max(process.output_bytes, size or 0)
        new, seen.size = max(0, now - seen.size), now
        return new

    def seen_bytes(self, process: Process) -> int:
        """Up to where the output was shown."""
        return self._of(process).size

    def asked(self, process: Process) -> None:
        """Note that its question was told by a wait."""
        self._of(process).asked_at = _asked_at(process)

    def asks_anew(self, process: Process) -> bool:
        """Whether it asks something that no wait has told."""
        return _asked_at(process) > self._of(process).asked_at

    def asked_until(self, processes: Iterable[Process]) -> float:
        """Later questions of these were not told. One that was may be among them, where another was not."""
        known = list(processes)
        is_new = any(map(self.asks_anew, known))
        return 0.0 if is_new else max((self._of(one).asked_at for one in known), default=0.0)

    def suggested_wait(self, process: Process, uptime: float) -> int:
        """How long to leave it alone: longer with every poll that found nothing, and the longer it runs."""
        patience = _FIRST_WAIT * 2 ** min(10, max(0, self._of(process).polls - 1))
        return int(min(_LONGEST_WAIT, max(patience, _OF_AGE * uptime)))

    def _of(self, process: Process) -> _Seen:
        found = self._seen.pop(process.id, None) or _Seen()
        self._seen[process.id] = found
        while len(self._seen) > _MOST:
            del self._seen[next(iter(self._seen))]
        return found


def _asked_at(process: Process) -> float:
    return float(process.needs_input["since"]) if process.needs_input is not None else 0.0


def _state(process: Process) -> object:
    return (
        process.status,
        process.reason,
        process.output_bytes,
        process.restarts,
        process.ready,
        process.stalled,
        bool(process.needs_input),
    )
