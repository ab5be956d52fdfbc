"""The daemon's line to the watch process: many questions at once, each answered when there is something to tell.

It is started when it is needed and ended when nothing was asked of it for a while. If it dies or hangs, a new one is
asked everything again. It tells which question it was looking into: that one alone is blamed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import Any, NamedTuple

from holdfast.daemon.logbook import note
from holdfast.errors import BadValue, HoldfastError
from holdfast.model.ids import ProcessId
from holdfast.model.watching import Match
from holdfast.watch import beat as beats
from holdfast.watch.beat import Beat
from holdfast.watch.told import Told

#: Longer than anything takes that is looked into at once; whoever takes longer hangs.
_PATIENCE = 10.0
_IDLE = 600.0
_MOST_DEATHS = 3
#: Processes in a row that died without an answer and over nobody's question: then it is not a question's fault.
_MOST_VAIN = 5
_PAUSE = 0.05
_LONGEST_ANSWER = 16 << 20
_MOST_SETS = 4096

_BOOT = """\
import sys
sys.path.insert(0, sys.argv.pop(1))
from holdfast.watch.__main__ import main
main(sys.argv[1:])
"""

Message = dict[str, Any]


class WatchBroken(HoldfastError):
    """The watch process does not survive this watch."""


class Scan(NamedTuple):
    """What was found: `upto` is how far it was looked, to go on behind; `complete` when there is no more to look at.

    Of more than 1,000 matches (or a quarter of a megabyte of them) the first and the newest are there, and `more`
    counts those between.
    """

    matches: list[Match]
    upto: int
    complete: bool
    more: int = 0


class _Died(Exception):
    def __init__(self, is_blamed: bool) -> None:
        self.is_blamed = is_blamed


class WatchLink:
    def __init__(self, place: str, environ: dict[str, str]) -> None:
        self._place = place
        self._environ = environ
        self._worker: _Worker | None = None
        self._starting = asyncio.Lock()
        self._sets: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
        self._numbers = 0
        self._vain = 0
        self._has_died = False
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """Of the watch process; None while there is none."""
        return self._worker.pid if self._worker is not None else None

    async def scan(
        self,
        process_id: ProcessId,
        stream: str,
        literals: tuple[str, ...],
        patterns: tuple[str, ...],
        after: int,
        upto: int | None,
        is_final: bool,
    ) -> Scan:
        """The lines of a stream that match, and where that was not so at `after`: see Scan.

        `is_final`: nothing follows `upto`. Raises BadValue for patterns, WatchBroken for a watch that it dies of.
        """
        ask = {"id": process_id, "stream": stream, "after": after, "upto": upto, "final": is_final}
        deaths = 0
        while True:
            try:
                return _scan(await self._ask_once(ask, literals, patterns), stream)
            except _Died as died:
                deaths += died.is_blamed
                note("watch-died", process=process_id, stream=stream, after=after, blamed=died.is_blamed)
            if deaths >= _MOST_DEATHS:
                what = f"the watch of {process_id} brings the watch process down"
                raise WatchBroken(what, next="start it again with other patterns")
            if self._vain >= _MOST_VAIN:
                raise HoldfastError("the watch process does not stay up", next="holdfast doctor")
            await asyncio.sleep(_PAUSE * (deaths + self._vain))  # others first

    def close(self) -> None:
        """Let go of it for good; it ends by itself."""
        self._is_closed = True
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    async def aclose(self) -> None:
        """As `close`, and wait until it has ended."""
        worker = self._worker
        self.close()
        if worker is not None:
            await worker.ended()

    async def _ask_once(self, ask: Message, literals: tuple[str, ...], patterns: tuple[str, ...]) -> Message:
        worker = await self._living()
        try:
            answer = await worker.ask(ask, self._number(literals, patterns), literals, patterns)
        except _Died as died:
            if self._worker is worker:
                self._worker = None
                self._has_died = worker.is_blaming
                self._vain += not worker.has_answered and not worker.is_blaming
            raise died
        self._vain = 0
        return answer

    async def _living(self) -> _Worker:
        async with self._starting:
            if self._is_closed:
                raise HoldfastError("the daemon is about to end", next="try again")
            if self._worker is None or not self._worker.is_living:
                # Whatever it died of, it might have been the optional engine.
                self._worker = await _start(self._place, self._environ, is_plain=self._has_died)
            return self._worker

    def _number(self, literals: tuple[str, ...], patterns: tuple[str, ...]) -> int:
        number = self._sets.get((literals, patterns))
        if number is None:
            if len(self._sets) >= _MOST_SETS:
                self._sets.pop(next(iter(self._sets)))
            self._numbers += 1
            number = self._sets[literals, patterns] = self._numbers
        return number


class _Worker:
    def __init__(self, process: asyncio.subprocess.Process, beat: Beat) -> None:
        self._process = process
        self._beat = beat
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._numbers = 0
        self._told: Told[bool] = Told()
        self._rest: asyncio.TimerHandle | None = None
        self._seen: tuple[int, int] = (0, 0)
        self.is_living = True
        self.has_answered = False
        #: Whether it died over a question.
        self.is_blaming = False
        self._reading = asyncio.get_running_loop().create_task(self._read())
        self._look_after()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ask(self, ask: Message, number: int, literals: tuple[str, ...], patterns: tuple[str, ...]) -> Message:
        """Raises _Died."""
        self._numbers += 1
        n = self._numbers
        message = {"n": n, "set": number, **ask}
        if not self.is_living:
            raise _Died(False)
        if number not in self._told:
            message |= {"literals": literals, "patterns": patterns}
        self._told.use(number, True)
        self._waiting[n] = asyncio.get_running_loop().create_future()
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            return await self._waiting[n]
        finally:
            del self._waiting[n]
            self._rest_later()

    def close(self) -> None:
        self.is_living = False
        if self._rest is not None:
            self._rest.cancel()
        self._watchdog.cancel()
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def ended(self) -> None:
        await self._reading

    async def _read(self) -> None:
        """Hand out answers until there are no more; then whoever still waits is told so."""
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            while (line := await self._process.stdout.readline()).endswith(b"\n"):
                self.has_answered = True
                answer = json.loads(line)
                waiting = self._waiting.get(answer["n"])
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        self._mourn()
        try:
            async with asyncio.timeout(
                _PATIENCE
            ):  # it ends by itself: to kill what has ended confuses who waits for it
                await self._process.wait()
        except TimeoutError:
            self._kill()
            await self._process.wait()

    def _mourn(self) -> None:
        self.close()
        blamed = self._beat.read()[0]
        self.is_blaming = blamed in self._waiting
        for n, waiting in self._waiting.items():
            if not waiting.done():
                waiting.set_exception(_Died(n == blamed))

    def _look_after(self) -> None:
        """End it when it has been at the same thing for too long."""
        seen = self._beat.read()
        if seen[0] and seen == self._seen:
            self._kill()
        self._seen = seen
        self._watchdog = asyncio.get_running_loop().call_later(_PATIENCE, self._look_after)

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _rest_later(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
        if self.is_living:
            self._rest = asyncio.get_running_loop().call_later(_IDLE, self._close_idle)

    def _close_idle(self) -> None:
        if not self._waiting:
            self.close()


async def _start(place: str, environ: dict[str, str], is_plain: bool) -> _Worker:
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    fd = beats.create()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", _BOOT, source, place, str(fd), *(["plain"] if is_plain else [])),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd="/",
            env=environ,
            limit=_LONGEST_ANSWER,
            pass_fds=(fd,),
        )
        return _Worker(process, Beat(fd))
    finally:
        os.close(fd)


def _scan(answer: Message, stream: str) -> Scan:
    if "error" in answer:
        raise (BadValue if answer["is_bad"] else HoldfastError)(answer["error"])
    matches = [Match(stream, *match) for match in answer["matches"]]
    return Scan(matches, answer["upto"], answer["complete"], answer["more"])
