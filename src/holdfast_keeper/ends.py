"""Ends: an exit is learned, recorded, told, and only then is the zombie let go."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import TYPE_CHECKING

from holdfast_keeper import farewell, groups, points
from holdfast_keeper.adopt import OFFER_TIME
from holdfast_keeper.hold import Hold, groups_of
from holdfast_keeper.loop import READ
from holdfast_keeper.pump import is_no_room

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

#: The kernel, or whoever is the parent now, may need a moment until the status can be had.
_STATUS_TRIES = 200
_STATUS_PAUSE = 0.01
#: Before the next attempt at what a full disk does not let us do.
_DISK_PAUSE = 0.25
#: Whoever waits for an end has it first: what is left to be done would compete with them for processors.
_COURTESY = 0.005


class Ends:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._loop = keeper.loop
        #: Commands whose exit is not recorded yet; as our children they must not be reaped before.
        self._unburied: dict[int, Hold] = {}
        #: Those that were told of, and are to be put away in a moment.
        self._ended: dict[str, Hold] = {}

    def expect(self, hold: Hold) -> None:
        if hold.exit is not None:
            return
        self._unburied[hold.born["pid"]] = hold
        if "pidfd" in hold.fds:
            self._loop.watch(hold.fds["pidfd"], READ, self._keeper.guarded(hold, lambda _: self._exited(hold)))
        else:
            self._loop.after(OFFER_TIME, self._keeper.guarded(hold, lambda: self._bury(hold, tries=1)))

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

    def settle(self, *ids: str) -> None:
        """Put away what was told of: now, where somebody asks for it."""
        for hold in [self._ended.pop(id_) for id_ in ids or list(self._ended) if id_ in self._ended]:
            self._keeper.safely(hold.id, partial(self.complete, hold))

    def complete(self, hold: Hold) -> None:
        """When all is said and written: move the bundle to done/ and let go of everything."""
        keeper = self._keeper
        if not hold.is_complete or not keeper.holds_still(hold):
            return
        try:
            os.rename(hold.directory, keeper.place.done(hold.id))
        except OSError as failed:
            if not is_no_room(failed):
                raise
            self._loop.after(_DISK_PAUSE, keeper.guarded(hold, lambda: self.complete(hold)))
            return
        del keeper.holds[hold.id]
        keeper.flow.end(hold)
        keeper.oom.end(hold)
        hold.directory = keeper.place.done(hold.id)
        points.reach("bundle-done")
        keeper.withdraw(hold.id)
        report = hold.report()
        hold.close(keeper.quota)
        keeper.quota.archive(hold.directory)
        keeper.tell({"fact": "closed", "id": hold.id, "report": report})
        left = [group for group in groups_of(hold.born) if not groups.remove(group)]
        if left:
            keeper.sweep_groups_later()
        keeper.end_if_done()

    def _exited(self, hold: Hold) -> None:
        self._loop.unwatch(hold.fds["pidfd"])
        self._bury(hold, _STATUS_TRIES)

    def _bury(self, hold: Hold, tries: int) -> None:
        keeper = self._keeper
        if not keeper.holds_still(hold) or hold.exit is not None:
            return
        if keeper.is_awaiting(hold):  # its last words may be in a terminal that is about to be offered
            self._loop.after(_STATUS_PAUSE, keeper.guarded(hold, lambda: self._bury(hold, tries)))
            return
        status = farewell.learn(hold)
        if status is None and tries > 1:
            self._loop.after(_STATUS_PAUSE, keeper.guarded(hold, lambda: self._bury(hold, tries - 1)))
            return
        points.reach("exit-learned")
        farewell.say(hold, status)
        points.reach("exit-recorded")
        keeper.tell({"fact": "ended", "id": hold.id, "report": hold.report()})
        points.reach("exit-told")
        self._unburied.pop(hold.born["pid"], None)
        farewell.reap(hold)
        points.reach("exit-reaped")
        keeper.flow.tell_waiters(hold)
        keeper.stopper.look(hold.id)
        if not self._ended:
            self._loop.after(_COURTESY, self.settle)
        self._ended[hold.id] = hold

    def _children_ended(self) -> None:
        """Bury commands with a record, and descendants that were left to us without ceremony."""
        while True:
            try:
                seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if seen is None:
                return
            hold = self._unburied.get(seen.si_pid)
            if hold is None:
                os.waitpid(seen.si_pid, 0)
                continue
            self._keeper.guarded(hold, lambda _, ended=hold: self._exited(ended))(0)
            if seen.si_pid in self._unburied:
                return  # it could not be recorded yet, and must stay
