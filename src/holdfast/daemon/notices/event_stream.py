"""The stream of events, for those who follow it.

An event on disk has a number and is never lost to a follower, however slow: it reads on from its own cursor, from
memory or from disk. A transient event is not kept: it goes to those who follow at the moment, and a follower that
cannot keep up gets the number of those it missed.
"""

from __future__ import annotations

import asyncio
import bisect
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from functools import cached_property
from typing import Any

from holdfast.daemon.core.cursors import follow
from holdfast.events.topics import PatternTree
from holdfast.model.events import Event, StoredEvent
from holdfast.store.store import Store
from holdfast.wire import light_json

Envelope = dict[str, Any]

#: Numbered events that are kept in memory: followers that are not far behind cost no reading.
_REMEMBERED = 5000
_AT_ONCE = 500
#: Transient events that may wait for one follower.
_MOST_TRANSIENT = 1000
#: Followers are woken at once, and then not before that many seconds for each of them: where there are many, each of
#: them gets several events at a time, which costs little more than one.
_PACE = 0.00025
_MOST_SHARED = 256
#: A batch in several messages has so many characters in each, or one event.
_MESSAGE = 512 << 10

DROPPED = "events.dropped"


class Batch:
    """Some events, and the number from which to go on behind them. The kept ones have a `seq`.

    Followers of the same pattern share it, with its text.
    """

    def __init__(self, cursor: int, events: list[Envelope]) -> None:
        self.cursor = cursor
        self.events = events

    @cached_property
    def texts(self) -> list[str]:
        """Each as JSON."""
        return [light_json.dumps(envelope) for envelope in self.events]

    @cached_property
    def messages(self) -> list[str]:
        """All of them as JSON arrays, as few as can be sent at once."""
        rows: list[list[str]] = []
        size = 0
        for text in self.texts:
            if not rows or size + len(text) > _MESSAGE:
                rows.append([])
                size = 0
            rows[-1].append(text)
            size += len(text)
        return [f"[{','.join(row)}]" for row in rows]


class EventStream:
    """All events, in order."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recent: deque[StoredEvent] = deque(maxlen=_REMEMBERED)
        self._followers: set[_Follower] = set()
        #: Set when a follower comes.
        self._came = asyncio.Event()
        #: Patterns and number -> the batch behind it, until there is more.
        self._shared: dict[tuple[str, int], Batch] = {}
        self._wake_at = 0.0
        self._waking: asyncio.TimerHandle | None = None
        store.on_events.append(self._happened)

    @property
    def newest(self) -> int:
        """The number of the event that happened last; 0 when nothing ever did."""
        return self._store.newest_event

    def is_followed(self, topic: str) -> bool:
        """Whether anyone would get an event with this topic now."""
        return any(follower.wants(topic) for follower in self._followers)

    async def until_followed(self, topic: str) -> None:
        """Returns when someone follows this topic."""
        while not self.is_followed(topic):
            self._came.clear()
            await self._came.wait()

    def publish_transient(self, topic: str, fields: dict[str, Any]) -> None:
        """For those who follow now. It has no number and is not kept."""
        envelope = Event(topic, time.time(), fields).envelope()
        for follower in self._followers:
            if follower.wants(topic):
                follower.put(envelope)
        self._wake_soon()

    async def read(self, after: int, pattern: str) -> AsyncIterator[Batch]:
        """What is there and follows that number. `pattern` may be several, with spaces in between."""
        upto = self.newest
        wanted = _wanted(pattern)
        while after < upto and (batch := await self._next(after)):
            after = batch[-1].seq
            yield Batch(after, _fitting(batch, wanted))

    async def follow(self, after: int, pattern: str) -> AsyncGenerator[Batch, None]:
        """What is there, and what comes, for ever."""
        with self._listening(pattern) as follower:

            async def read(after: int) -> tuple[int, Batch] | None:
                if after < self.newest and (batch := await self._batch(after, pattern, follower.pattern)):
                    return batch.cursor, batch
                transient = follower.take()
                return (after, Batch(after, transient)) if transient else None

            async def wait(after: int) -> bool:
                follower.woken.clear()
                if after >= self.newest and not follower.has_transient:
                    await follower.woken.wait()
                return True

            async with aclosing(follow(after, read, wait)) as batches:
                async for batch in batches:
                    yield batch

    async def _batch(self, after: int, pattern: str, wanted: PatternTree[bool]) -> Batch | None:
        """What follows that number, made once for all who want the same of it."""
        if (shared := self._shared.get((pattern, after))) is not None:
            return shared
        newest = self.newest
        numbered = await self._next(after)
        if not numbered:
            return None
        batch = Batch(numbered[-1].seq, _fitting(numbered, wanted))
        if newest == self.newest and self._is_recent(after) and len(self._shared) < _MOST_SHARED:
            self._shared[pattern, after] = batch
        return batch

    async def _next(self, after: int) -> list[StoredEvent]:
        if self._is_recent(after):
            start = bisect.bisect_right(self._recent, after, key=lambda event: event.seq)
            return [self._recent[at] for at in range(start, min(start + _AT_ONCE, len(self._recent)))]
        return await self._store.read_events(after, _AT_ONCE)

    def _is_recent(self, after: int) -> bool:
        """Whether what follows that number is in memory."""
        return bool(self._recent) and self._recent[0].seq <= after + 1

    def _happened(self, numbered: list[StoredEvent]) -> None:
        self._recent.extend(numbered)
        self._shared.clear()
        self._wake_soon()

    def _wake_soon(self) -> None:
        if self._waking is None and self._followers:
            loop = asyncio.get_running_loop()
            if (now := loop.time()) >= self._wake_at:
                self._wake(now)
            else:
                self._waking = loop.call_at(self._wake_at, self._wake, self._wake_at)

    def _wake(self, now: float) -> None:
        self._waking = None
        self._wake_at = now + _PACE * len(self._followers)
        for follower in self._followers:
            follower.woken.set()

    @contextmanager
    def _listening(self, pattern: str) -> Iterator[_Follower]:
        follower = _Follower(_wanted(pattern))
        self._followers.add(follower)
        self._came.set()
        try:
            yield follower
        finally:
            self._followers.discard(follower)


class _Follower:
    """One who follows: its patterns, and the transient events that it has not taken yet."""

    def __init__(self, pattern: PatternTree[bool]) -> None:
        self.pattern = pattern
        self.woken = asyncio.Event()
        self._transient: deque[Envelope] = deque()
        self._missed = 0

    @property
    def has_transient(self) -> bool:
        return bool(self._transient or self._missed)

    def wants(self, topic: str) -> bool:
        return bool(self.pattern.find(topic))

    def put(self, envelope: Envelope) -> None:
        if len(self._transient) >= _MOST_TRANSIENT:
            self._transient.popleft()
            self._missed += 1
        self._transient.append(envelope)

    def take(self) -> list[Envelope]:
        taken = list(self._transient)
        self._transient.clear()
        if self._missed:
            taken.insert(0, Event(DROPPED, time.time(), {"count": self._missed}).envelope())
            self._missed = 0
        return taken


def _wanted(pattern: str) -> PatternTree[bool]:
    tree: PatternTree[bool] = PatternTree()
    for one in pattern.split():
        tree.add(one, True)
    return tree


def _fitting(batch: list[StoredEvent], wanted: PatternTree[bool]) -> list[Envelope]:
    return [{"seq": seq, **envelope} for seq, envelope, _ in batch if wanted.find(str(envelope.get("type") or "?"))]
