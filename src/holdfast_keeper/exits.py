"""Exits, in this order: learn the status, record it, publish it, reap the zombie, archive the bundle."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import TYPE_CHECKING

from holdfast_keeper import exit_record, failpoints, groups
from holdfast_keeper.adopt import OFFER_TIME
from holdfast_keeper.held_command import HeldCommand, groups_of
from holdfast_keeper.loop import READ
from holdfast_keeper.pump import is_disk_full

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

#: The status may not be readable yet: the kernel, or a parent other than us, needs a moment.
_STATUS_TRIES = 200
_STATUS_PAUSE = 0.01
#: Before the next attempt on a full disk.
_DISK_PAUSE = 0.25
#: After an exit is published: archiving at once would compete for processors with those who wait for the exit.
_ARCHIVE_DELAY = 0.005


class Exits:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._loop = keeper.loop
        #: Commands whose exit is not recorded yet: as our children they must not be reaped before.
        self._unreaped: dict[int, HeldCommand] = {}
        #: Commands whose exit is published and whose bundle is not archived yet.
        self._ended: dict[str, HeldCommand] = {}

    def expect(self, command: HeldCommand) -> None:
        if command.exit is not None:
            return
        self._unreaped[command.born["pid"]] = command
        if "pidfd" in command.fds:
            self._loop.watch(command.fds["pidfd"], READ, self._keeper.guarded(command, lambda _: self._exited(command)))
        else:
            self._loop.after(OFFER_TIME, self._keeper.guarded(command, lambda: self._record_exit(command, tries=1)))

    def listen_for_children(self) -> None:
        wake, wakeup = os.pipe()
        for fd in (wake, wakeup):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)

        def ready(events: int) -> None:
            os.read(wake, 4096)
            self._children_ended()

        self._loop.watch(wake, READ, ready)
        self._children_ended()

    def archive_ended(self, *ids: str) -> None:
        """Archive the bundles of commands that have ended, all or these: at once, because a request needs it."""
        for command in [self._ended.pop(id_) for id_ in ids or list(self._ended) if id_ in self._ended]:
            self._keeper.safely(command.id, partial(self.archive_if_complete, command))

    def archive_if_complete(self, command: HeldCommand) -> None:
        """Once the exit is recorded and the output closed: move the bundle to done/ and close its descriptors."""
        keeper = self._keeper
        if not command.is_complete or not keeper.is_current(command):
            return
        try:
            os.rename(command.directory, keeper.dir.done(command.id))
        except OSError as failed:
            if not is_disk_full(failed):
                raise
            self._loop.after(_DISK_PAUSE, keeper.guarded(command, lambda: self.archive_if_complete(command)))
            return
        del keeper.commands[command.id]
        keeper.streams.end(command)
        keeper.oom.end(command)
        command.directory = keeper.dir.done(command.id)
        failpoints.reach("bundle-done")
        keeper.withdraw(command.id)
        report = command.report()
        command.close(keeper.quota)
        keeper.quota.archive(command.directory)
        keeper.publish({"fact": "closed", "id": command.id, "report": report})
        left = [group for group in groups_of(command.born) if not groups.remove(group)]
        if left:
            keeper.sweep_groups_later()
        keeper.exit_if_done()

    def _exited(self, command: HeldCommand) -> None:
        self._loop.unwatch(command.fds["pidfd"])
        self._record_exit(command, _STATUS_TRIES)

    def _record_exit(self, command: HeldCommand, tries: int) -> None:
        keeper = self._keeper
        if not keeper.is_current(command) or command.exit is not None:
            return
        if keeper.awaits_offer(command):  # its last output may be in a terminal that is about to be offered
            self._loop.after(_STATUS_PAUSE, keeper.guarded(command, lambda: self._record_exit(command, tries)))
            return
        status = exit_record.learn_status(command)
        if status is None and tries > 1:
            self._loop.after(_STATUS_PAUSE, keeper.guarded(command, lambda: self._record_exit(command, tries - 1)))
            return
        failpoints.reach("exit-learned")
        exit_record.record(command, status)
        failpoints.reach("exit-recorded")
        keeper.publish({"fact": "ended", "id": command.id, "report": command.report()})
        failpoints.reach("exit-published")
        self._unreaped.pop(command.born["pid"], None)
        exit_record.reap(command)
        failpoints.reach("exit-reaped")
        keeper.streams.notify_waiters(command)
        keeper.stopper.step(command.id)
        if not self._ended:
            self._loop.after(_ARCHIVE_DELAY, self.archive_ended)
        self._ended[command.id] = command

    def _children_ended(self) -> None:
        """Record the exits of commands; reap other descendants, which became our children, without a record."""
        while True:
            try:
                seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if seen is None:
                return
            command = self._unreaped.get(seen.si_pid)
            if command is None:
                os.waitpid(seen.si_pid, 0)
                continue
            self._keeper.guarded(command, lambda _, ended=command: self._exited(ended))(0)
            if seen.si_pid in self._unreaped:
                return  # its exit could not be recorded yet: it must stay a zombie
