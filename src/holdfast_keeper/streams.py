"""Moves output into logs and input into commands, and answers requests that wait for output."""

from __future__ import annotations

import errno
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast_keeper import failpoints
from holdfast_keeper.connections import HANGUP, READ, WRITE, Connection
from holdfast_keeper.held_command import HeldCommand
from holdfast_keeper.output import Pump, is_disk_full

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

_DISK_PAUSE = 0.25


class OutputWaiter(NamedTuple):
    """A request that waits until a stream has grown beyond an offset."""

    connection: Connection
    rid: Any
    stream: str
    after: int

    def answer(self, command: HeldCommand) -> bool:
        """Answer if the stream has grown or closed. Returns whether it was answered."""
        pump = command.pumps[self.stream]
        if pump.log.end <= self.after and not pump.closed:
            return False
        self.connection.answer(self.rid, {"end": pump.log.end, "closed": pump.closed})
        return True


class Streams:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._loop = keeper.loop
        self._waiters: dict[str, list[OutputWaiter]] = {}

    def begin(self, command: HeldCommand) -> None:
        for name, pump in command.pumps.items():
            if not pump.closed:
                self._watch_output(command, name)
                if not command.is_new:
                    # The last keeper may have died with bytes in its own pipe, for which no descriptor becomes ready.
                    self._loop.after(0, self._keeper.guarded(command, partial(self._output, command, name)))
        self.feed(command)

    def go_on(self, command: HeldCommand) -> None:
        """After a failed attempt: move what is there."""
        for name in command.pumps:
            self._go_on(command, name)
        self.feed(command)

    def end(self, command: HeldCommand) -> None:
        for fd in command.fds.values():
            self._loop.unwatch(fd)
        self.notify_waiters(command)
        self._waiters.pop(command.id, None)

    def wait(self, command: HeldCommand, waiter: OutputWaiter) -> None:
        if not waiter.answer(command):
            waiting = [other for other in self._waiters.get(command.id, ()) if other.connection.is_open]
            self._waiters[command.id] = [*waiting, waiter]

    def drained(self, command: HeldCommand) -> None:
        """What it had written is in the log: for a stream that is closed, a full disk is over."""
        for name in [name for name in command.full_streams if command.pumps[name].closed]:
            self._disk_has_room(command, name)

    def ended(self, command: HeldCommand) -> None:
        """Its exit is recorded, and its output up to then is in the log."""
        for pump in command.pumps.values():
            self._forget_closed(pump)
        self.notify_waiters(command)

    def notify_waiters(self, command: HeldCommand) -> None:
        waiting = self._waiters.get(command.id)
        if waiting:
            self._waiters[command.id] = [waiter for waiter in waiting if not waiter.answer(command)]

    def feed(self, command: HeldCommand) -> None:
        """Pass on what was written to the command, and close its input once that is requested and all is passed on."""
        if command.input is None or not self._keeper.is_current(command):
            return
        failpoints.reach("input-written")
        try:
            more = command.input.move()
            failpoints.reach("input-moved")
        except OSError as gone:
            if gone.errno not in (errno.EPIPE, errno.EIO):
                raise
            self._end_input(command)
            return
        self._watch_input(command, more)
        if not more and command.input.journal.is_sealed:
            self._end_input(command)

    def _watch_output(self, command: HeldCommand, name: str) -> None:
        ready = self._keeper.guarded(command, lambda _: self._output(command, name))
        self._loop.watch(command.pumps[name].source, READ, ready)

    def _output(self, command: HeldCommand, name: str) -> None:
        pump = command.pumps[name]
        if not self._keeper.is_current(command) or pump.closed:
            return  # its descriptor numbers may be in use for something else by now
        first = pump.log.first
        failpoints.reach("output-seen")
        try:
            pump.move()
            failpoints.reach("output-moved")
            self._disk_has_room(command, name)
            self._gather(command, name)
        except OSError as error:
            if not is_disk_full(error):
                raise
            self._wait_for_disk(command, name)
        self._forget_closed(pump)
        if pump.log.first != first:
            self._keeper.publish({"fact": "trimmed", "id": command.id, "stream": name, "first": pump.log.first})
        self.notify_waiters(command)
        self._keeper.exits.archive_if_complete(command)

    def _gather(self, command: HeldCommand, name: str) -> None:
        pump = command.pumps[name]
        pause = 0.0 if pump.closed else pump.pause(time.monotonic())
        if pause:
            self._loop.unwatch(pump.source)
            self._loop.after(pause, self._keeper.guarded(command, partial(self._go_on, command, name)))

    def _forget_closed(self, pump: Pump) -> None:
        if pump.closed:
            self._loop.unwatch(pump.source)

    def _wait_for_disk(self, command: HeldCommand, name: str) -> None:
        """Full disk: the bytes stay in the pipe, and the command blocks when that is full. Nothing is lost."""
        self._loop.unwatch(command.pumps[name].source)
        if name not in command.full_streams:
            command.full_streams.add(name)
            self._keeper.publish({"fact": "disk_full", "id": command.id, "stream": name})
        self._loop.after(_DISK_PAUSE, self._keeper.guarded(command, partial(self._go_on, command, name)))

    def _go_on(self, command: HeldCommand, name: str) -> None:
        if self._keeper.is_current(command) and not command.pumps[name].closed:
            self._watch_output(command, name)
            self._output(command, name)

    def _disk_has_room(self, command: HeldCommand, name: str) -> None:
        if name in command.full_streams:
            command.full_streams.discard(name)
            self._keeper.publish({"fact": "disk_free", "id": command.id, "stream": name})
            self.feed(command)  # on a terminal, input waited as well

    def _watch_input(self, command: HeldCommand, more: bool) -> None:
        if command.is_terminal:
            self._watch_terminal(command, READ | WRITE if more else READ)
        elif more:
            self._loop.watch(command.fds["stdin"], WRITE, self._keeper.guarded(command, lambda _: self.feed(command)))
        else:
            self._loop.unwatch(command.fds["stdin"])

    def _watch_terminal(self, command: HeldCommand, mask: int) -> None:
        def ready(events: int) -> None:
            if events & WRITE:
                self.feed(command)
            if events & (READ | HANGUP):
                self._output(command, "out")

        if not command.pumps["out"].closed and not command.full_streams:
            self._loop.watch(command.fds["pty"], mask, self._keeper.guarded(command, ready))

    def _end_input(self, command: HeldCommand) -> None:
        if "stdin" in command.fds:
            self._loop.unwatch(command.fds["stdin"])
        self._keeper.withdraw(command.id, command.close_input())
