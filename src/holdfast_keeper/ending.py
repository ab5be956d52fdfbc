"""How commands end: by themselves, by a stop, or by the kernel at their memory limit.

`Stopper` has the stops in progress: the escalation of each, the requests to answer, and the record that a new keeper
continues from. `Exits` takes every exit through these steps: learn the status, record it, publish it, reap the zombie,
archive the bundle. `OomWatch` notices kills by a memory limit, which end the whole tree.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast_keeper import bundle, cgroups, failpoints, kernel, log, protocol
from holdfast_keeper.adopt import OFFER_TIME
from holdfast_keeper.bundle import Slot
from holdfast_keeper.connections import READ, Refusal, ReplyTo
from holdfast_keeper.held_command import HeldCommand, groups_of, tree_of
from holdfast_keeper.kernel import Tree, TreeMember
from holdfast_keeper.output import is_disk_full

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

#: After SIGKILL: how long a process stuck in the kernel is waited for before it is reported as a survivor.
_FORCE_TIMEOUT = 5.0
#: Between two looks at a tree that is being stopped.
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.05

#: The status may not be readable yet: the kernel, or a parent other than us, needs a moment.
_STATUS_TRIES = 200
_STATUS_PAUSE = 0.01
#: Before the next attempt on a full disk.
_DISK_PAUSE = 0.25
#: After an exit is published: archiving at once would compete for processors with those who wait for the exit.
_ARCHIVE_DELAY = 0.005
#: More do not fit into a slot.
_MOST_LEFTOVERS = 24

#: How often to look, after a notification, until the kill is counted and the tree is gone.
_LOOKS = 400
_LOOK_PAUSE = 0.005


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
        if now > self._forced_at + _FORCE_TIMEOUT:
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
            # Before its output, which is drained then: the end of both is often seen in the same round.
            exited = self._keeper.guarded(command, lambda _: self._record_exit(command, _STATUS_TRIES))
            self._loop.watch(command.fds["pidfd"], READ, exited, is_first=True)
        else:
            self._loop.after(OFFER_TIME, self._keeper.guarded(command, lambda: self._record_exit(command, tries=1)))

    def record_if_dead(self, command: HeldCommand) -> None:
        """After a failed attempt: record the exit if the kernel knows it by now."""
        if command.exit is None and "pidfd" in command.fds and _learn_status(command) is not None:
            self._record_exit(command, _STATUS_TRIES)

    def record_if_reported(self, command: HeldCommand) -> bool:
        """Record its exit if the kernel reports it already, and the event is still to come. Whether it was recorded."""
        pidfd = command.fds.get("pidfd")
        if pidfd is None or command.exit is not None or (seen := kernel.dead_child(pidfd)) is None:
            return False
        self._record_exit(command, _STATUS_TRIES, seen)
        return command.exit is not None

    def listen_for_children(self) -> None:
        ended = self._children = kernel.block_signal(signal.SIGCHLD)

        def ready(events: int) -> None:
            os.read(ended, 4096)
            self._children_ended()

        self._loop.watch(ended, READ, ready)
        self._children_ended()

    def close(self) -> None:
        """Signals of children interrupt again."""
        os.close(self._children)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))

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
        report = None if command.is_complete_known else command.report()
        keeper.quota.archive(command.directory, command.close(keeper.quota))
        if report is not None:
            keeper.publish({"fact": "closed", "id": command.id, "report": report})
        left = [group for group in groups_of(command.born) if not cgroups.remove(group)]
        if left:
            keeper.sweep_groups_later()
        keeper.exit_if_done()

    def _record_exit(self, command: HeldCommand, tries: int, seen: kernel.DeadChild | None = None) -> None:
        keeper = self._keeper
        if not keeper.is_current(command) or command.exit is not None:
            return
        if keeper.awaits_offer(command):  # its last output may be in a terminal that is about to be offered
            self._try_again(command, tries)
            return
        status = _learn_status(command, seen)
        if status is None and tries > 1:
            self._try_again(command, tries - 1)
            return
        failpoints.reach("exit-learned")
        _record(command, status, keeper.starter.forks.peak_before_exec)
        failpoints.reach("exit-recorded")
        keeper.streams.drained(command)
        command.is_complete_known = command.is_complete
        keeper.publish({"fact": "ended", "id": command.id, "report": command.report()})
        failpoints.reach("exit-published")
        self._unwatch(command)
        self._unreaped.pop(command.born["pid"], None)
        _reap(command)
        failpoints.reach("exit-reaped")
        keeper.streams.ended(command)
        keeper.stopper.step(command.id)
        if not self._ended:
            self._loop.after(_ARCHIVE_DELAY, self.archive_ended)
        self._ended[command.id] = command

    def _try_again(self, command: HeldCommand, tries: int) -> None:
        self._unwatch(command)
        self._loop.after(_STATUS_PAUSE, self._keeper.guarded(command, lambda: self._record_exit(command, tries)))

    def _unwatch(self, command: HeldCommand) -> None:
        if "pidfd" in command.fds:
            self._loop.unwatch(command.fds["pidfd"])

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
            if command is None and self._keeper.starter.is_starting(seen.si_pid):
                return  # it has ended already: `expect` sees that
            if command is None:
                os.waitpid(seen.si_pid, 0)
                continue
            self._keeper.guarded(command, lambda ended=command: self._record_exit(ended, _STATUS_TRIES))()
            if seen.si_pid in self._unreaped:
                return  # its exit could not be recorded yet: it must stay a zombie


class ExitStatus(NamedTuple):
    value: int
    """As wait(2) encodes it."""
    witness: str
    peak: int | None = None
    """As `DeadChild.peak`."""


def _learn_status(command: HeldCommand, seen: kernel.DeadChild | None = None) -> ExitStatus | None:
    """The exit status of a command that has ended; None when no source knows it. Does not reap it: while it is a
    zombie, a successor can still learn its status. `seen`: what the kernel has just said of it.
    """
    pidfd = command.fds.get("pidfd")
    if pidfd is not None:
        if (seen := seen or kernel.dead_child(pidfd)) is not None:
            return ExitStatus(seen.status, "parent", seen.peak)
        status = _as_reaped(pidfd) or _as_zombie(command)
        if status is not None:
            return status
    state = bundle.read_state(command.directory)
    if state is not None and state.witness is not None:
        return ExitStatus(int(state.witness["status"]), "anchor")
    return None


def _as_zombie(command: HeldCommand) -> ExitStatus | None:
    found = kernel.stat(command.born["pid"])
    if found is None or found.start != command.born["start"] or not found.is_dead or not kernel.is_ours(found.pid):
        return None
    return ExitStatus(found.exit_status, "proc")


def _as_reaped(pidfd: int) -> ExitStatus | None:
    value = kernel.reaped_status(pidfd)
    return None if value is None else ExitStatus(value, "pidfd")


def _record(command: HeldCommand, status: ExitStatus | None, peak_before_exec: int) -> None:
    """Drain the output, then record the exit. Afterwards it may be published, and the zombie reaped."""
    ends = {name: pump.drain() for name, pump in command.pumps.items()}
    tree = command.tree
    members = [member for member in tree.members() if member != tree.leader]
    exit_ = _exit_slot(status, ends, [[*member] for member in members])
    # The kernel's peak of a process outlives its exec: a small one is that of the fork.
    peak = status.peak if status is not None and (status.peak or 0) > peak_before_exec else None
    command.record_exit({**exit_, **_usage(command, peak)})


def _usage(command: HeldCommand, peak: int | None) -> Slot:
    """Processor time and peak memory, as far as the kernel still knows, and whether it reached its memory limit. `peak`
    is that of its largest process.
    """
    paths = command.born.get("limits", {})
    used: Slot = {"cpu": cgroups.group_cpu(command.born["group"]), "peak": cgroups.peak_bytes(paths) or peak}
    return {**used, "oom": True} if cgroups.oom_kills(paths) else used


def _reap(command: HeldCommand) -> None:
    pidfd = command.fds.get("pidfd")
    if pidfd is not None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)


def _exit_slot(status: ExitStatus | None, ends: dict[str, int], leftovers: list[list[int]]) -> Slot:
    code = signal = None
    if status is not None:
        if os.WIFSIGNALED(status.value):
            signal = os.WTERMSIG(status.value)
        else:
            code = os.WEXITSTATUS(status.value)
    return {
        "status": None if status is None else status.value,
        "code": code,
        "signal": signal,
        "witness": None if status is None else status.witness,
        "at": time.time(),
        "ends": ends,
        "leftovers": leftovers[:_MOST_LEFTOVERS],
        "leftover_count": len(leftovers),
    }


class OomWatch:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._events: dict[str, int] = {}

    def begin(self, command: HeldCommand) -> None:
        """Subscribe to kills, and look for those that happened before."""
        group = command.born.get("limits", {}).get("memory")
        if group is None or command.id in self._events or not os.path.exists(f"{group}/cgroup.event_control"):
            return
        try:
            event = _oom_event(group)
        except OSError:
            return  # the kernel lacks it, or the cgroup is gone: the exit record still says `oom`
        self._events[command.id] = event
        self._keeper.loop.watch(event, READ, self._keeper.guarded(command, lambda _: self._notified(command, event)))
        if cgroups.oom_kills(command.born["limits"]):
            self._look(command, _LOOKS)

    def end(self, command: HeldCommand) -> None:
        event = self._events.pop(command.id, None)
        if event is not None:
            self._keeper.loop.unwatch(event)
            os.close(event)

    def _notified(self, command: HeldCommand, event: int) -> None:
        os.eventfd_read(event)
        self._look(command, _LOOKS)

    def _look(self, command: HeldCommand, looks: int) -> None:
        """Repeated, because the notification comes before the kill, and the tree may still be forking."""
        if looks == 0 or command.id not in self._events:
            return
        if cgroups.oom_kills(command.born["limits"]):
            if command.exit is not None and not command.tree.members():
                return
            command.tree.force()
        self._keeper.loop.after(_LOOK_PAUSE, self._keeper.guarded(command, lambda: self._look(command, looks - 1)))


def _oom_event(group: str) -> int:
    """An eventfd that becomes readable when the cgroup runs out of memory."""
    event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    control = os.open(f"{group}/memory.oom_control", os.O_RDONLY | os.O_CLOEXEC)
    try:
        cgroups.write(f"{group}/cgroup.event_control", f"{event} {control}")
    except OSError:
        os.close(event)
        raise
    finally:
        os.close(control)
    return event
