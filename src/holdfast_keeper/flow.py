"""What flows: output into logs, input into commands, and word of it to those who wait."""

from __future__ import annotations

import errno
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast_keeper import points
from holdfast_keeper.control import Connection
from holdfast_keeper.hold import Hold
from holdfast_keeper.loop import HANGUP, READ, WRITE
from holdfast_keeper.pump import Pump, is_no_room

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

_DISK_PAUSE = 0.25


class OutputWaiter(NamedTuple):
    """Somebody who wants to know when a stream has grown beyond an offset."""

    connection: Connection
    rid: Any
    stream: str
    after: int

    def answer(self, hold: Hold) -> bool:
        """Answer if there is news; whether there was."""
        pump = hold.pumps[self.stream]
        if pump.log.end <= self.after and not pump.closed:
            return False
        self.connection.answer(self.rid, {"end": pump.log.end, "closed": pump.closed})
        return True


class Flow:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._loop = keeper.loop
        self._waiters: dict[str, list[OutputWaiter]] = {}

    def begin(self, hold: Hold) -> None:
        for name, pump in hold.pumps.items():
            if not pump.closed:
                self._watch_output(hold, name)
                # A predecessor may have died with bytes on their way, of which no descriptor tells.
                self._loop.after(0, self._keeper.guarded(hold, partial(self._output, hold, name)))
        self.feed(hold)

    def end(self, hold: Hold) -> None:
        for fd in hold.fds.values():
            self._loop.unwatch(fd)
        self.tell_waiters(hold)
        self._waiters.pop(hold.id, None)

    def wait(self, hold: Hold, waiter: OutputWaiter) -> None:
        if not waiter.answer(hold):
            waiting = [other for other in self._waiters.get(hold.id, ()) if other.connection.is_open]
            self._waiters[hold.id] = [*waiting, waiter]

    def tell_waiters(self, hold: Hold) -> None:
        waiting = self._waiters.get(hold.id)
        if waiting:
            self._waiters[hold.id] = [waiter for waiter in waiting if not waiter.answer(hold)]

    def feed(self, hold: Hold) -> None:
        """Pass on what was written to the command, and end its input when that was asked for."""
        if hold.input is None or not self._keeper.holds_still(hold):
            return
        points.reach("input-written")
        try:
            more = hold.input.move()
            points.reach("input-moved")
        except OSError as gone:
            if gone.errno not in (errno.EPIPE, errno.EIO):
                raise
            self._end_input(hold)
            return
        self._watch_input(hold, more)
        if not more and hold.input.journal.is_sealed:
            self._end_input(hold)

    def _watch_output(self, hold: Hold, name: str) -> None:
        ready = self._keeper.guarded(hold, lambda _: self._output(hold, name))
        self._loop.watch(hold.pumps[name].source, READ, ready)

    def _output(self, hold: Hold, name: str) -> None:
        pump = hold.pumps[name]
        if not self._keeper.holds_still(hold) or pump.closed:
            return  # its descriptors may belong to somebody else by now
        first = pump.log.first
        points.reach("output-seen")
        try:
            pump.move()
            points.reach("output-moved")
            self._has_room(hold, name)
            self._gather(hold, name)
        except OSError as error:
            if not is_no_room(error):
                raise
            self._wait_for_room(hold, name)
        self._forget_closed(pump)
        if pump.log.first != first:
            self._keeper.tell({"fact": "trimmed", "id": hold.id, "stream": name, "first": pump.log.first})
        self.tell_waiters(hold)
        self._keeper.ends.complete(hold)

    def _gather(self, hold: Hold, name: str) -> None:
        pump = hold.pumps[name]
        pause = 0.0 if pump.closed else pump.pause(time.monotonic())
        if pause:
            self._loop.unwatch(pump.source)
            self._loop.after(pause, self._keeper.guarded(hold, partial(self._go_on, hold, name)))

    def _forget_closed(self, pump: Pump) -> None:
        if pump.closed:
            self._loop.unwatch(pump.source)

    def _wait_for_room(self, hold: Hold, name: str) -> None:
        """The bytes stay in the pipe; the command waits when that is full, and nothing is lost."""
        self._loop.unwatch(hold.pumps[name].source)
        if name not in hold.without_room:
            hold.without_room.add(name)
            self._keeper.tell({"fact": "disk_full", "id": hold.id, "stream": name})
        self._loop.after(_DISK_PAUSE, self._keeper.guarded(hold, partial(self._go_on, hold, name)))

    def _go_on(self, hold: Hold, name: str) -> None:
        if self._keeper.holds_still(hold) and not hold.pumps[name].closed:
            self._watch_output(hold, name)
            self._output(hold, name)

    def _has_room(self, hold: Hold, name: str) -> None:
        if name in hold.without_room:
            hold.without_room.discard(name)
            self._keeper.tell({"fact": "disk_free", "id": hold.id, "stream": name})
            self.feed(hold)  # on a terminal, input had to wait as well

    def _watch_input(self, hold: Hold, more: bool) -> None:
        if hold.is_terminal:
            self._watch_terminal(hold, READ | WRITE if more else READ)
        elif more:
            self._loop.watch(hold.fds["stdin"], WRITE, self._keeper.guarded(hold, lambda _: self.feed(hold)))
        else:
            self._loop.unwatch(hold.fds["stdin"])

    def _watch_terminal(self, hold: Hold, mask: int) -> None:
        def ready(events: int) -> None:
            if events & WRITE:
                self.feed(hold)
            if events & (READ | HANGUP):
                self._output(hold, "out")

        if not hold.pumps["out"].closed and not hold.without_room:
            self._loop.watch(hold.fds["pty"], mask, self._keeper.guarded(hold, ready))

    def _end_input(self, hold: Hold) -> None:
        if "stdin" in hold.fds:
            self._loop.unwatch(hold.fds["stdin"])
        self._keeper.withdraw(hold.id, hold.close_input())
