"""The requests of the watch process. Many can wait at once; each is answered when there is something to report.

scan    n, set, id, stream, after, upto, final; with a set that is not known yet: literals, patterns
     -> n, matches: [[offset, end, pattern, output, is_cut]], more, upto, complete; or n, error, is_bad (a bad pattern)

Scans take turns. A new one comes before those that take long, so a flood of output delays no other scan. The number of
the scan whose turn it is stands in `current`, for the daemon to read after a crash.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import NamedTuple

from holdfast.errors import BadValue, HoldfastError
from holdfast.logs.matcher import StreamMatcher
from holdfast.logs.reader import Log
from holdfast.watch.jobs import ScanJob, ScanRequest
from holdfast.watch.patterns import Patterns
from holdfast.wire.worker import CurrentRequest, KnownValues, Message

#: Compiled pattern sets, and matchers that can be continued, in memory.
_MOST_SETS = 64
_MOST_MATCHERS = 512
#: At most this many new scans come before one that takes long.
_MOST_NEW = 8


class _Running(NamedTuple):
    n: int
    set: int
    job: ScanJob


class WatchServer:
    def __init__(self, place: str, current: CurrentRequest, may_prefilter: bool) -> None:
        self._place = place
        self._may_prefilter = may_prefilter
        self._current = current
        self._texts: KnownValues[tuple[list[str], list[str]]] = KnownValues()
        self._sets: OrderedDict[int, Patterns] = OrderedDict()
        self._matchers: OrderedDict[tuple[int, str, str], StreamMatcher] = OrderedDict()
        self._new: deque[Message] = deque()
        self._long: deque[_Running] = deque()
        self._new_in_a_row = 0

    @property
    def is_idle(self) -> bool:
        return not self._new and not self._long

    def add(self, request: Message) -> None:
        texts = (request["literals"], request["patterns"]) if "literals" in request else None
        self._new.append({**request, "texts": self._texts.use(request["set"], texts)})

    def turn(self) -> Message | None:
        """Work on one scan for a moment. The reply, if there is one."""
        is_new = bool(self._new) and (not self._long or self._new_in_a_row < _MOST_NEW)
        self._new_in_a_row = self._new_in_a_row + 1 if is_new else 0
        n = self._new[0]["n"] if is_new else self._long[0].n
        self._current.set(n)
        try:
            scan = self._begun(self._new.popleft()) if is_new else self._long.popleft()
            return self._step(scan)
        except (OSError, HoldfastError) as failed:
            return {"n": n, "error": str(failed), "is_bad": isinstance(failed, BadValue)}
        finally:
            self._current.set(0)

    def _step(self, scan: _Running) -> Message | None:
        job = scan.job
        try:
            if not job.turn():
                self._long.append(scan)
                return None
            matches = [[match.offset, match.end, match.pattern, match.output, match.is_cut] for match in job.result()]
            reply = {"n": scan.n, "matches": matches, "more": job.more, "upto": job.upto, "complete": job.is_complete}
        except OSError:
            job.close()
            raise
        if not (job.is_complete and job.request.is_final):
            self._matchers[scan.set, job.request.process_id, job.request.stream] = job.matcher
            while len(self._matchers) > _MOST_MATCHERS:
                self._matchers.popitem(last=False)
        job.close()
        return reply

    def _begun(self, ask: Message) -> _Running:
        request = ScanRequest(ask["id"], ask["stream"], ask["after"], ask["upto"], ask["final"])
        matcher = self._matchers.pop((ask["set"], ask["id"], ask["stream"]), None)
        patterns = self._patterns(ask["set"], ask["texts"])
        log = Log(ask.get("place", self._place), request.process_id, request.stream)
        job = ScanJob(request, patterns, log, matcher if matcher and matcher.at == request.after else None)
        return _Running(ask["n"], ask["set"], job)

    def _patterns(self, number: int, texts: tuple[list[str], list[str]]) -> Patterns:
        found = self._sets.get(number)
        if found is None:
            found = self._sets[number] = Patterns(*texts, self._may_prefilter)
            while len(self._sets) > _MOST_SETS:
                self._sets.popitem(last=False)
        self._sets.move_to_end(number)
        return found
