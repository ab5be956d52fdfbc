"""What the sessions of a storm were notified of, and which of it is wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from holdfast.client.results.notification import Notification
from tests.chaos.commands import Child


class NoticeLedger:
    """Every notification that a session received. Faults are texts."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._acknowledged: set[str] = set()
        self._over: set[str] = set()
        self._ends: dict[str, set[str]] = defaultdict(set)
        self._matches: dict[str, dict[str, int]] = defaultdict(dict)
        self._sessions: dict[str, str] = {}

    def received(self, session: str, notices: Iterable[Notification]) -> None:
        for notice in notices:
            process = str(notice.process)
            where = f"{notice.kind} of {process} ({notice.id})"
            if self._sessions.setdefault(notice.id, session) != session or notice.session != session:
                self.faults.append(f"{where}: came to {session}, and belongs to {notice.session}")
            if notice.id in self._acknowledged:
                self.faults.append(f"{where}: came again after it was acknowledged")
            if notice.kind == "completion":
                if process in self._over:
                    self.faults.append(f"{where}: came after a wait had returned the end")
                self._ends[process].add(notice.id)
            elif notice.kind == "watch_match":
                self._matches[process][notice.id] = notice.data["count"]
            elif notice.kind == "watch_disabled":
                self._matches[process][notice.id] = notice.data["suppressed"]

    def acknowledged(self, notices: Iterable[Notification]) -> None:
        """They must not come again."""
        self._acknowledged.update(notice.id for notice in notices)

    def consumed(self, child: Child) -> None:
        """A wait of its owner returned its end: that must not be notified any more."""
        self._over.add(child.process_id)

    def missing(self, children: Iterable[Child]) -> list[str]:
        """What is not here yet."""
        found = []
        for child in children:
            if child.is_consumed is False and not self._ends[child.process_id]:
                found.append(f"{child}: no notification of its end")
            if (count := self._match_count(child)) < child.needles:
                found.append(f"{child}: {count} of {child.needles} matches notified")
        return found

    def surplus(self, children: Iterable[Child]) -> list[str]:
        """What is here too often, or of no process of the storm."""
        ours = {child.process_id: child for child in children}
        found = [f"{child}: {self._match_count(child)} matches notified, {child.needles} written"
                 for child in ours.values() if self._match_count(child) > child.needles]  # fmt: skip
        ends = Counter({process: len(ids) for process, ids in self._ends.items()})
        found += [f"{ours.get(process, process)}: {count} notifications of its end"
                  for process, count in ends.items() if count > 1 or (count and process not in ours)]  # fmt: skip
        return found

    def _match_count(self, child: Child) -> int:
        return sum(self._matches[child.process_id].values())
