"""Publish and subscribe within one program.

`publish` may be called from anywhere: any thread, with or without a running event loop, from within a subscriber. What
a subscriber does wrong is logged and affects no other.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.model.topics import PatternTree, segments

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

Envelope: TypeAlias = dict[str, Any]
Callback: TypeAlias = Callable[[Envelope], Any]

#: Topics whose subscribers are remembered; more than a program has, few enough to be forgotten and found again.
_MOST_REMEMBERED = 4096
_CO_COROUTINE = 0x80


class Handle:
    """One subscription. Needed to end it; opaque otherwise."""

    __slots__ = ("_callback", "_is_async", "_is_open", "_loop", "_number", "_pattern")

    def __init__(self, number: int, pattern: str, callback: Callback) -> None:
        self._number = number
        self._pattern = pattern
        self._callback = callback
        self._is_async = _is_async(callback)
        self._loop = _running_loop() if self._is_async else None
        self._is_open = True

    def __repr__(self) -> str:
        return f"<subscription {self._number} to {self._pattern!r}{'' if self._is_open else ', ended'}>"


class Bus:
    """A bus of its own: events published here are delivered here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tree: PatternTree[Handle] = PatternTree()
        self._count = 0
        #: Topic -> its subscribers, in the order of subscription. A new dict whenever a subscription comes or goes.
        self._remembered: dict[str, tuple[Handle, ...]] = {}
        #: What async subscribers are still doing: a task without a reference may vanish.
        self._tasks: set[Task[Any]] = set()

    def publish(self, topic: str, payload: Mapping[str, Any] | None = None) -> None:
        """Deliver to all who subscribed to a pattern that matches. Sync subscribers have run when this returns.

        They get an envelope: the payload's fields, and `type` (the topic), `ts` (now) and `src` (the topic's first
        segment) unless the payload has them. Raises ValueError for an empty topic, TypeError for a payload that is no
        mapping.
        """
        fields = _fields(payload)
        hearers = self._remembered.get(topic)
        if hearers is None:
            hearers = self._find(topic)
        if not hearers:
            return
        envelope = {"type": topic, "ts": time.time(), "src": topic.partition(".")[0], **fields}
        dropped = 0
        for handle in hearers:
            if not handle._is_open:
                continue  # one before it in the row ended it
            if handle._is_async:
                dropped += not self._schedule(handle, dict(envelope))
            else:
                _call(handle, dict(envelope))
        if dropped:
            _warn("%s: no event loop runs; %d async subscribers did not get it", topic, dropped)

    def subscribe(self, pattern: str, callback: Callback) -> Handle:
        """Let `callback` be called with the envelope of every event whose topic matches the pattern.

        A coroutine function is run as a task: on the loop that runs here and now, if it still does then, otherwise on
        the loop of the publisher. Raises ValueError for an empty pattern, TypeError for what cannot be called.
        """
        segments(pattern, "pattern")
        if not callable(callback):
            raise TypeError(f"{callback!r} cannot be called")
        with self._lock:
            self._count += 1
            handle = Handle(self._count, pattern, callback)
            self._tree.add(pattern, handle)
            self._remembered = {}
        return handle

    def unsubscribe(self, handle: object) -> bool:
        """End a subscription; False when it was over before. After this its callback is not called any more."""
        with self._lock:
            if not isinstance(handle, Handle) or not handle._is_open:
                return False
            try:
                self._tree.remove(handle._pattern, handle)
            except KeyError:
                return False  # of another bus
            handle._is_open = False
            self._remembered = {}
        return True

    def _find(self, topic: str) -> tuple[Handle, ...]:
        with self._lock:
            found = tuple(sorted(self._tree.find(topic), key=lambda handle: handle._number))
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered = {}
            self._remembered[topic] = found
        return found

    def _schedule(self, handle: Handle, envelope: Envelope) -> bool:
        """Have an async subscriber run; False when no loop runs that could do it."""
        running = _running_loop()
        home = handle._loop
        if home is None or home is running or not home.is_running():
            if running is None:
                return False
            self._begin(running, handle, envelope)
            return True
        try:
            home.call_soon_threadsafe(self._begin, home, handle, envelope)
        except RuntimeError:  # closed meanwhile
            return False
        return True

    def _begin(self, loop: AbstractEventLoop, handle: Handle, envelope: Envelope) -> None:
        task = loop.create_task(_run(handle, envelope))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _fields(payload: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if payload is None:
        return {}
    if not isinstance(payload, Mapping):
        raise TypeError(f"a payload is a mapping, not {type(payload).__name__}")
    return payload


def _call(handle: Handle, envelope: Envelope) -> None:
    try:
        result = handle._callback(envelope)
    except Exception:  # noqa: BLE001 - what one subscriber does wrong is not the others' trouble, nor the publisher's
        _log_failure(handle)
        return
    if isinstance(result, Coroutine):
        result.close()
        _warn("%r returned a coroutine, which is not awaited: subscribe a coroutine function instead", handle)


async def _run(handle: Handle, envelope: Envelope) -> None:
    try:
        await handle._callback(envelope)
    except Exception:  # noqa: BLE001 - as in _call
        _log_failure(handle)


def _is_async(callback: Callback) -> bool:
    """Whether calling it makes a coroutine. (What `inspect` says; to import that takes longer than all of this.)"""
    function: Any = callback
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return bool(code is not None and code.co_flags & _CO_COROUTINE)


def _running_loop() -> AbstractEventLoop | None:
    import sys

    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None  # it is not imported, so no loop of it runs
    loop: AbstractEventLoop | None = asyncio._get_running_loop()
    return loop


def _warn(text: str, *arguments: object) -> None:
    import logging

    logging.getLogger("holdfast.events").warning(text, *arguments)


def _log_failure(handle: Handle) -> None:
    import logging

    logging.getLogger("holdfast.events").exception("%r failed", handle)
