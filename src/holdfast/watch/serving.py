"""What the watch process is asked and what it answers: many questions at once, each when there is something to tell.

scan    n, set, id, stream, after, upto, final; with a set not told before: literals, patterns
     -> n, matches: [[offset, end, pattern, output, is_cut]], more, upto, complete; or n, error, is_bad (a bad pattern)

Questions take turns. One that was not looked into yet comes before those that take long, so that a flood somewhere
delays nobody else. The number of the question that is looked into stands in `beat`, for whoever finds us dead.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

from holdfast.errors import BadValue, HoldfastError
from holdfast.logs.reader import Log
from holdfast.watch.beat import Beat
from holdfast.watch.jobs import Job, Question
from holdfast.watch.patterns import Patterns
from holdfast.watch.scanner import Scanner
from holdfast.watch.told import Told

Message = dict[str, Any]

#: Compiled patterns, and streams that can be gone on with at once.
_MOST_SETS = 64
_MOST_SCANNERS = 512
#: So many new questions come before one that takes long.
_MOST_NEW = 8


class Watches:
    def __init__(self, place: str, beat: Beat, may_prefilter: bool) -> None:
        self._place = place
        self._may_prefilter = may_prefilter
        self._beat = beat
        self._told: Told[tuple[list[str], list[str]]] = Told()
        self._sets: OrderedDict[int, Patterns] = OrderedDict()
        self._scanners: OrderedDict[tuple[int, str, str], Scanner] = OrderedDict()
        self._new: deque[Message] = deque()
        self._long: deque[tuple[int, int, Job]] = deque()
        self._in_a_row = 0

    @property
    def is_idle(self) -> bool:
        return not self._new and not self._long

    def ask(self, ask: Message) -> None:
        texts = (ask["literals"], ask["patterns"]) if "literals" in ask else None
        self._new.append({**ask, "texts": self._told.use(ask["set"], texts)})

    def turn(self) -> Message | None:
        """Look into one question for a moment; what there is to tell of it."""
        if self._new and (not self._long or self._in_a_row < _MOST_NEW):
            self._in_a_row += 1
            ask = self._new.popleft()
            n, number = ask["n"], ask["set"]
            self._beat.begin(n)
            try:
                job = self._job(ask)
            except (OSError, HoldfastError) as failed:
                self._beat.end()
                return _failed(n, failed)
        else:
            self._in_a_row = 0
            n, number, job = self._long.popleft()
            self._beat.begin(n)
        answer = self._look(n, number, job)
        self._beat.end()
        return answer

    def _look(self, n: int, number: int, job: Job) -> Message | None:
        try:
            if not job.turn():
                self._long.append((n, number, job))
                return None
            answer = _told(n, job)
        except OSError as failed:
            answer = _failed(n, failed)
        else:
            self._remember(number, job)
        job.close()
        return answer

    def _job(self, ask: Message) -> Job:
        question = Question(ask["id"], ask["stream"], ask["after"], ask["upto"], ask["final"])
        scanner = self._scanners.pop((ask["set"], ask["id"], ask["stream"]), None)
        patterns = self._patterns(ask["set"], ask["texts"])
        log = Log(self._place, question.process_id, question.stream)
        return Job(question, patterns, log, scanner if scanner and scanner.at == question.after else None)

    def _patterns(self, number: int, texts: tuple[list[str], list[str]]) -> Patterns:
        found = self._sets.get(number)
        if found is None:
            found = self._sets[number] = Patterns(*texts, self._may_prefilter)
            while len(self._sets) > _MOST_SETS:
                self._sets.popitem(last=False)
        self._sets.move_to_end(number)
        return found

    def _remember(self, number: int, job: Job) -> None:
        if job.is_complete and job.question.is_final:
            return
        self._scanners[number, job.question.process_id, job.question.stream] = job.scanner
        while len(self._scanners) > _MOST_SCANNERS:
            self._scanners.popitem(last=False)


def _told(n: int, job: Job) -> Message:
    matches = [[match.offset, match.end, match.pattern, match.output, match.is_cut] for match in job.told()]
    return {"n": n, "matches": matches, "more": job.more, "upto": job.upto, "complete": job.is_complete}


def _failed(n: int, failed: Exception) -> Message:
    return {"n": n, "error": str(failed), "is_bad": isinstance(failed, BadValue)}
