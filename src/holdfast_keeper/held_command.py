"""Held commands: the parts and the state of each, and what moves through its streams.

`HeldCommand` is one of them: bundle, descriptors, record of stop and exit. `Streams` moves the output of all of them
into their logs and their input to them, and answers requests that wait for output.
"""

from __future__ import annotations

import errno
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast_keeper import bundle, failpoints, kernel
from holdfast_keeper.bundle import Slot
from holdfast_keeper.connections import HANGUP, READ, WRITE, Connection, Descriptors
from holdfast_keeper.journal import Input, Journal, PipeInput, TerminalInput
from holdfast_keeper.kernel import Tree, TreeMember
from holdfast_keeper.output import LostPump, PipePump, Pump, Quota, Segments, TerminalPump, is_disk_full

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

#: Before the next attempt on a full disk.
_DISK_PAUSE = 0.25
#: Between two looks whether a holder may still offer a terminal.
_OFFER_PAUSE = 0.02


class HeldCommand:
    """The parts of one held command. Its methods never wait."""

    def __init__(
        self,
        process_id: str,
        directory: str,
        state: bundle.BundleState,
        fds: Descriptors,
        quota: Quota,
        is_new: bool = False,
    ) -> None:
        assert state.born is not None
        self.id = process_id
        self.directory = directory
        self.is_new = is_new
        self.born: Slot = state.born
        self.stop = state.stop
        self.exit = state.exit
        self.fds = fds
        self.pumps: dict[str, Pump] = _pumps(self, quota, is_new)
        self.input: Input | None = _input(fds)
        #: Whether the daemon knows that its output is complete.
        self.is_complete_known = False
        #: Why the last attempt on this bundle failed; the next one is due. None normally.
        self.quarantine: str | None = None
        self.failed_at = 0.0
        self.retry_pause = 0.0
        self._is_stop_written = True
        #: Streams whose output waits in the pipe because the disk is full.
        self.full_streams: set[str] = set()

    @property
    def tree(self) -> Tree:
        return tree_of(self.id, self.born)

    @property
    def trouble(self) -> str | None:
        """Why its output does not advance; None normally."""
        if self.quarantine is not None:
            return "quarantined"
        return "disk_full" if self.full_streams else None

    @property
    def is_terminal(self) -> bool:
        return bool(self.born["pty"])

    @property
    def is_complete(self) -> bool:
        """The exit is recorded and nothing can write to the output any more."""
        return self.exit is not None and all(pump.closed for pump in self.pumps.values())

    def record_stop(self, stop: Slot) -> None:
        """Where it raises OSError, the record is in memory, and is written before the exit."""
        self.stop, self._is_stop_written = stop, False
        bundle.write_slot(self.directory, bundle.STOP, stop)
        self._is_stop_written = True

    def record_exit(self, exit_: Slot) -> None:
        if self.stop is not None and not self._is_stop_written:
            self.record_stop(self.stop)
        bundle.write_slot(self.directory, bundle.EXIT, exit_)
        self.exit = exit_

    def report(self) -> dict[str, Any]:
        streams = {
            name: {"first": pump.log.first, "end": pump.log.end, "closed": pump.closed}
            for name, pump in self.pumps.items()
        }
        return {
            "id": self.id,
            "born": self.born,
            "stop": self.stop,
            "exit": self.exit,
            "streams": streams,
            "stdin": self._stdin_report(),
            "trouble": self.trouble,
        }

    def close_input(self) -> list[str]:
        """Close the command's stdin. Returns the names of the descriptors that every holder must close, too."""
        self.input = None
        return self.close_fds("stdin", "journal", "inr", "inw")

    def close_fds(self, *names: str) -> list[str]:
        gone = [name for name in names if name in self.fds]
        for name in gone:
            os.close(self.fds.pop(name))
        return gone

    def close(self, quota: Quota) -> int:
        """Returns how many bytes its log has."""
        held = sum(pump.log.held for pump in self.pumps.values())
        for pump in self.pumps.values():
            pump.log.close()
            quota.retire(pump.log)
        self.close_fds(*list(self.fds))
        return held

    def _stdin_report(self) -> dict[str, Any] | None:
        if self.input is None:
            return None
        journal = self.input.journal
        return {"open": not journal.is_sealed, "accepted": journal.accepted, "consumed": journal.passed_on}


def _pumps(command: HeldCommand, quota: Quota, is_new: bool) -> dict[str, Pump]:
    fds, cap, directory = command.fds, int(command.born["cap"]), command.directory
    if command.is_terminal:
        log = Segments(directory, "out", cap, quota, is_new)
        if "pty" not in fds:
            return {"out": LostPump(log)}
        return {"out": TerminalPump(fds["pty"], (fds["outr"], fds["outw"]), log)}
    names = bundle.stream_names(command.born)
    return {
        name: PipePump(fds[name], Segments(directory, name, cap // len(names), quota, is_new))
        for name in names
        if name in fds
    }


def _input(fds: Descriptors) -> Input | None:
    if "journal" not in fds:
        return None
    journal = Journal(fds["journal"])
    if "pty" in fds:
        return TerminalInput(journal, fds["pty"], (fds["inr"], fds["inw"]))
    return PipeInput(journal, fds["stdin"]) if "stdin" in fds else None


def groups_of(born: Slot) -> set[str]:
    """The cgroups that a command is in."""
    groups = {born["group"], *born.get("limits", {}).values()}
    return {group for group in groups if group is not None}


def tree_of(process_id: str, born: Slot) -> Tree:
    init = TreeMember(*born["init"]) if "init" in born else None
    return Tree(process_id, TreeMember(born["pid"], born["start"]), born["group"], born["boot"], init)


def reopen(directory: str, born: Slot, fds: Descriptors) -> None:
    """Open again what can be opened without a holder: the process and the FIFOs."""
    if "pidfd" not in fds and born["boot"] == kernel.boot_id():
        pidfd = kernel.open_process(born["pid"], born["start"])
        if pidfd is not None:
            fds["pidfd"] = pidfd
    if not born["pty"]:
        for name in bundle.stream_names(born):
            if name not in fds:
                fds[name] = open_fifo(directory, name)


def open_fifo(directory: str, name: str) -> int:
    return os.open(f"{directory}/{bundle.FIFO[name]}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def new_report(process_id: str, born: Slot) -> dict[str, Any]:
    """The report of a command that has just started."""
    has_input = born["stdin"]
    return {
        "id": process_id,
        "born": born,
        "stop": None,
        "exit": None,
        "streams": {name: {"first": 0, "end": 0, "closed": False} for name in bundle.stream_names(born)},
        "stdin": {"open": True, "accepted": 0, "consumed": 0} if has_input else None,
        "trouble": None,
    }


class Streams:
    """The streams of all held commands."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._loop = keeper.loop
        self._waiters: dict[str, list[OutputWaiter]] = {}

    def begin(self, command: HeldCommand) -> None:
        for name, pump in command.pumps.items():
            if pump.source < 0:
                self._await_offer(command, pump)
            elif not pump.closed:
                self._watch_output(command, name)
                if not command.is_new:
                    # The last keeper may have died with bytes in its own pipe, for which no descriptor becomes ready.
                    self._loop.after(0, self._keeper.guarded(command, partial(self._output, command, name)))
        self.feed(command)

    def _await_offer(self, command: HeldCommand, pump: Pump) -> None:
        """Of the master of its terminal, which may hold output, also when the command has ended."""
        if not self._keeper.is_current(command):
            return
        if self._keeper.awaits_offer(command):
            again = self._keeper.guarded(command, partial(self._await_offer, command, pump))
            self._loop.after(_OFFER_PAUSE, again)
            return
        pump.closed = True
        self.notify_waiters(command)
        self._keeper.exits.archive_if_complete(command)

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
        ready = self._keeper.guarded(command, lambda events: self._output(command, name, events))
        self._loop.watch(command.pumps[name].source, READ, ready)

    def _output(self, command: HeldCommand, name: str, events: int = READ) -> None:
        pump = command.pumps[name]
        if not self._keeper.is_current(command) or pump.closed:
            return  # its descriptor numbers may be in use for something else by now
        if not events & READ and pump.hung_up() and self._keeper.exits.record_if_reported(command):
            return  # most commands close their output by their exit
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
        pump = command.pumps[name]
        if self._keeper.is_current(command) and pump.source >= 0 and not pump.closed:
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
