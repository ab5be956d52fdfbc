"""The stream of events for followers.

An event on disk has a number, and no follower misses it: each reads on from its own cursor, from memory or from disk.
Where events behind a cursor are not kept any more, an event in their place says how many. A transient event is not
kept: it goes to the present followers, and a follower that cannot keep up gets the number of those it missed.
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

from holdfast import light_json
from holdfast.daemon.core.tasks import follow
from holdfast.model.events import Event, StoredEvent
from holdfast.model.topics import PatternTree
from holdfast.store.store import Store

Envelope = dict[str, Any]

#: Numbered events that are kept in memory: followers that are not far behind need no disk.
_REMEMBERED = 5000
_AT_ONCE = 500
#: Transient events that may wait for one follower.
_MOST_TRANSIENT = 1000
#: Seconds between two wake-ups, for each follower: where there are many, each gets several events at a time, which
#: costs little more than one.
_WAKE_INTERVAL = 0.00025
_MOST_SHARED = 256
#: Topics of which each follower remembers whether it follows them.
_MOST_TOPICS = 256
#: Characters in one message of a batch, unless a single event has more.
_MESSAGE = 512 << 10

DROPPED = "events.dropped"
GAP = "events.gap"


class Batch:
    """Some events, and the cursor behind them. Events on disk have a `seq`.

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
        """All of them as JSON arrays, in as few messages as possible."""
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
        #: Set when a follower arrives.
        self._arrived = asyncio.Event()
        #: Patterns and cursor -> the batch behind it, until there are more events.
        self._shared: dict[tuple[str, int], Batch] = {}
        #: The topics of the events since followers were last woken.
        self._topics: set[str] = set()
        self._wake_at = 0.0
        self._waking: asyncio.TimerHandle | None = None
        store.on_events.append(self._recent.extend)

    @property
    def newest(self) -> int:
        """The number of the newest event; 0 when there is none."""
        return self._store.newest_event

    def is_followed(self, *topics: str) -> bool:
        """Whether any follower gets events with one of these topics."""
        return any(follower.follows(topic) for follower in self._followers for topic in topics)

    async def until_followed(self, topic: str) -> None:
        """Returns when there is a follower of this topic."""
        while not self.is_followed(topic):
            self._arrived.clear()
            await self._arrived.wait()

    def publish_transient(self, topic: str, fields: dict[str, Any]) -> None:
        """Send an event to the present followers. It has no number and is not kept."""
        envelope = Event(topic, time.time(), fields).envelope()
        for follower in self._followers:
            if follower.follows(topic):
                follower.put(envelope)
        self._wake_soon()

    async def read(self, after: int, pattern: str) -> AsyncIterator[Batch]:
        """The present events behind the cursor. `pattern` may be several, separated by spaces."""
        upto = self.newest
        tree = _tree(pattern)
        while after < upto:
            batch = await self._batch(after, pattern, tree)
            after = batch.cursor
            yield batch

    async def follow(self, after: int, pattern: str) -> AsyncGenerator[Batch, None]:
        """The present and all future events behind the cursor, for ever."""
        with self._listening(pattern) as follower:

            async def read(after: int) -> tuple[int, Batch] | None:
                if after < self.newest:
                    batch = await self._batch(after, pattern, follower.pattern)
                    return batch.cursor, batch
                transient = follower.take()
                return (after, Batch(after, transient)) if transient else None

            async def wait(after: int) -> bool:
                follower.woken.clear()
                follower.cursor = after
                if after >= self.newest and not follower.has_transient:
                    await follower.woken.wait()
                return True

            async with aclosing(follow(after, read, wait)) as batches:
                async for batch in batches:
                    yield batch

    async def _batch(self, after: int, pattern: str, tree: PatternTree[bool]) -> Batch:
        """The events behind the cursor, which lies before the newest; made once for all followers of the pattern."""
        if (shared := self._shared.get((pattern, after))) is not None:
            return shared
        newest = self.newest
        numbered = await self._next(after)
        first, last = (numbered[0].seq, numbered[-1].seq) if numbered else (newest + 1, newest)
        gap = [_gap(after, first)] if first > after + 1 else []
        batch = Batch(last, [*gap, *_fitting(numbered, tree)])
        is_current = newest == self.newest and self._is_recent(after)
        if is_current and self._followers and len(self._shared) < _MOST_SHARED:
            self._shared[pattern, after] = batch
        return batch

    async def _next(self, after: int) -> list[StoredEvent]:
        if self._is_recent(after):
            start = bisect.bisect_right(self._recent, after, key=lambda event: event.seq)
            return [self._recent[at] for at in range(start, min(start + _AT_ONCE, len(self._recent)))]
        return await self._store.read_events(after, _AT_ONCE)

    def _is_recent(self, after: int) -> bool:
        """Whether the events behind the cursor are in memory."""
        return bool(self._recent) and self._recent[0].seq <= after + 1

    def _happened(self, numbered: list[StoredEvent]) -> None:
        """Called only while there are followers."""
        self._shared.clear()
        self._topics.update(map(_topic, numbered))
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
        self._wake_at = now + _WAKE_INTERVAL * len(self._followers)
        topics, self._topics = self._topics, set()
        for follower in self._followers:
            # One that follows other topics reads on now and then, so that it has little to read when its own come.
            is_behind = self.newest - follower.cursor >= _AT_ONCE
            if is_behind or follower.has_transient or any(map(follower.follows, topics)):
                follower.woken.set()

    @contextmanager
    def _listening(self, pattern: str) -> Iterator[_Follower]:
        follower = _Follower(_tree(pattern))
        if not self._followers:
            self._store.on_events.append(self._happened)
        self._followers.add(follower)
        self._arrived.set()
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            if not self._followers:
                self._store.on_events.remove(self._happened)
                self._shared.clear()
                self._topics.clear()


class _Follower:
    """A follower: its patterns, and the transient events that it has not read yet."""

    def __init__(self, pattern: PatternTree[bool]) -> None:
        self.pattern = pattern
        self.woken = asyncio.Event()
        #: The number of the event that it has read last.
        self.cursor = 0
        self._followed: dict[str, bool] = {}
        self._transient: deque[Envelope] = deque()
        self._missed = 0

    @property
    def has_transient(self) -> bool:
        return bool(self._transient or self._missed)

    def follows(self, topic: str) -> bool:
        found = self._followed.get(topic)
        if found is None:
            if len(self._followed) >= _MOST_TOPICS:
                self._followed.clear()
            found = self._followed[topic] = bool(self.pattern.find(topic))
        return found

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


def _tree(pattern: str) -> PatternTree[bool]:
    tree: PatternTree[bool] = PatternTree()
    for one in pattern.split():
        tree.add(one, True)
    return tree


def _gap(after: int, first: int) -> Envelope:
    """Stands for the missing events before `first`, and has the number of the last of them."""
    return {"seq": first - 1, **Event(GAP, time.time(), {"count": first - 1 - after}).envelope()}


def _topic(event: StoredEvent) -> str:
    return str(event.envelope.get("type") or "?")


def _fitting(batch: list[StoredEvent], tree: PatternTree[bool]) -> list[Envelope]:
    return [{"seq": one.seq, **one.envelope} for one in batch if tree.find(_topic(one))]
