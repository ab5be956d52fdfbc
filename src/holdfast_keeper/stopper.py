"""Stops in progress: the escalation of each, the requests to answer, and the record that a new keeper resumes from."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any

from holdfast_keeper import bundle, failpoints, kernel, log, protocol
from holdfast_keeper.connections import Refusal, ReplyTo
from holdfast_keeper.held_command import HeldCommand, tree_of
from holdfast_keeper.kernel import Tree, TreeMember

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper


class Stopper:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._stops: dict[str, _Stop] = {}

    @property
    def is_busy(self) -> bool:
        return bool(self._stops)

    def is_stopping(self, process_id: str) -> bool:
        return process_id in self._stops

    def stop(self, reply_to: ReplyTo, process_id: str, stop: dict[str, Any], late: bool = False) -> bool:
        """End a tree and answer when it is gone. Returns False when there is no such process.

        The first request and its reason are recorded before any signal is sent, and never overwritten, except that a
        stop for good replaces a stop for a restart. With `late` the request is recorded even when the command has
        ended: then it is not run again.
        """
        now = time.time()
        current = self._stops.get(process_id)
        tree = self._tree(process_id)
        if tree is None:
            return False
        self._record(process_id, {**stop, "at": now, "forced": False}, late)
        if current is not None:
            current.escalation.hurry(stop["grace"], now, stop["quiet"])
        else:
            current = self._stops[process_id] = _Stop(
                Escalation(tree, stop["signal"], stop["grace"], now, quiet=stop["quiet"])
            )
        current.reply_to.append(reply_to)
        self.step(process_id)
        return True

    def resume(self, command: HeldCommand) -> None:
        """Continue a stop that the last keeper began."""
        stop = command.stop
        if stop is not None and command.exit is None:
            quiet = stop.get("quiet", 0.0)
            escalation = Escalation(command.tree, stop["signal"], stop["grace"], stop["at"], stop["forced"], quiet)
            self._stops[command.id] = _Stop(escalation)
            self._keeper.loop.after(0, lambda: self.step(command.id))

    def step(self, process_id: str) -> None:
        """Take the next step of a stop, if one is in progress."""
        current = self._stops.get(process_id)
        if current is None:
            return
        was_forced = current.escalation.forced
        pause = current.escalation.step(time.time())
        if current.escalation.forced and not was_forced:
            self._record_force(process_id)
        command = self._keeper.commands.get(process_id)
        if pause is None and not current.escalation.survivors and command is not None and command.exit is None:
            pause = 0.01 if command.quarantine is None and current.may_wait() else None
        if pause is not None:
            self._again(current, process_id, pause)
            return
        del self._stops[process_id]
        self._answer(current, process_id)

    def _again(self, current: _Stop, process_id: str, pause: float) -> None:
        if current.timer is not None:
            current.timer.cancel()
        current.timer = self._keeper.loop.after(pause, lambda: self.step(process_id))

    def _answer(self, current: _Stop, process_id: str) -> None:
        answer = {
            "forced": current.escalation.forced,
            "survivors": current.escalation.survivors,
            "report": self._keeper.report(process_id),
        }
        for connection, rid in current.reply_to:
            connection.answer(rid, answer)
        self._keeper.sweep_groups()
        self._keeper.exit_if_done()

    def _record(self, process_id: str, stop: dict[str, Any], late: bool) -> None:
        command = self._keeper.commands.get(process_id)
        if command is not None:
            if _counts(command.stop, stop) and (command.exit is None or late):
                self._keep(command, stop if command.exit is None else {**stop, "late": True})
                failpoints.reach("stop-recorded")
            return
        directory = self._keeper.dir.done(process_id)
        state = bundle.read_state(directory)
        if late and state is not None and _counts(state.stop, stop):
            try:
                bundle.write_slot(directory, bundle.STOP, {**stop, "late": True})
            except OSError as failed:  # it could be run again after a crash: better say so
                raise Refusal("disk_full", f"the stop cannot be recorded: {failed.strerror}") from None
            failpoints.reach("stop-recorded")

    def _record_force(self, process_id: str) -> None:
        """Also when only leftovers of the command had to be killed; but not without a recorded stop."""
        command = self._keeper.commands.get(process_id)
        if command is not None:
            if command.stop is not None:
                self._keep(command, {**command.stop, "forced": True})
            return
        directory = self._keeper.dir.done(process_id)
        state = bundle.read_state(directory)
        if state is not None and state.stop is not None:
            try:
                bundle.write_slot(directory, bundle.STOP, {**state.stop, "forced": True})
            except OSError as failed:
                log.write(f"keeper: {process_id}: {failed}")

    def _keep(self, command: HeldCommand, stop: dict[str, Any]) -> None:
        """A disk that cannot be written must not prevent a kill: then the record is written before the exit."""
        try:
            command.record_stop(stop)
        except OSError as failed:
            log.write(f"keeper: {command.id}: the stop is not on disk yet: {failed}")

    def _tree(self, process_id: str) -> Tree | None:
        command = self._keeper.commands.get(process_id)
        if command is not None:
            return command.tree
        state = bundle.read_state(self._keeper.dir.done(process_id))
        return tree_of(process_id, state.born) if state is not None and state.born is not None else None


def _counts(before: dict[str, Any] | None, stop: dict[str, Any]) -> bool:
    """Whether a stop is recorded over the one before."""
    return before is None or (before["reason"] == protocol.RESTART != stop["reason"])


class _Stop:
    def __init__(self, escalation: Escalation) -> None:
        self.escalation = escalation
        self.reply_to: list[ReplyTo] = []
        self.timer: Any = None
        #: Looks at an empty tree whose exit is not recorded yet: the kernel is about to report it.
        self._tries_left = 300

    def may_wait(self) -> bool:
        self._tries_left -= 1
        return self._tries_left > 0


#: After SIGKILL: how long a process stuck in the kernel is waited for before it is reported as a survivor.
FORCE_TIMEOUT = 5.0

_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.05


class Escalation:
    """One stop in progress. `step` is called until it returns None. Times are wall-clock: they outlive a keeper."""

    def __init__(
        self, held: Tree, stop_signal: int, grace: float, requested_at: float, forced: bool = False, quiet: float = 0.0
    ) -> None:
        self._tree = held
        self._stop_signal = stop_signal
        #: No signal is sent before this: a stop command may end it meanwhile.
        self.signal_at = requested_at + quiet
        self.force_at = self.signal_at + grace
        self.forced = forced
        self._forced_at: float | None = None
        self._signalled: set[TreeMember] = set()
        self._pause = _FIRST_PAUSE
        self.survivors: list[int] = []

    def hurry(self, grace: float, now: float, quiet: float = 0.0) -> None:
        """Another request to stop it: the shorter times apply."""
        self.signal_at = min(self.signal_at, now + quiet)
        self.force_at = min(self.force_at, now + quiet + grace)

    def step(self, now: float) -> float | None:
        """Do what is due. Returns the pause before the next step; None when the tree is gone or cannot be killed."""
        members = self._members()
        self.survivors = [member.pid for member in members]
        if not members:
            return None
        if now < min(self.signal_at, self.force_at):
            return min(self._next_pause(), self.signal_at - now)
        if now < self.force_at:
            self._signal(members)
            return min(self._next_pause(), self.force_at - now)
        if self._forced_at is None:
            self._forced_at = now
            self._pause = _FIRST_PAUSE
            self.forced = True
        if now > self._forced_at + FORCE_TIMEOUT:
            return None
        self._tree.force()
        for member in members:
            kernel.send_signal(member, signal.SIGKILL)
        return self._next_pause()

    def _members(self) -> list[TreeMember]:
        """Includes processes that got the stop signal as members and have left the tree since."""
        found = self._tree.members()
        return [*found, *(member for member in self._signalled - set(found) if kernel.is_alive(member))]

    def _signal(self, members: list[TreeMember]) -> None:
        for member in members:
            if member not in self._signalled:
                self._signalled.add(member)
                kernel.send_signal(member, self._stop_signal)
                kernel.send_signal(member, signal.SIGCONT)  # a stopped process would not handle it

    def _next_pause(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE)
        return pause
