"""The keeper: one loop that starts commands, moves their output, records their exits, and answers the daemon.

It owns every bundle of its place, and keeps nothing in memory that a successor would need. The work is done in
`starter`, `held_command` and `ending`; this module holds what they share, and starts the daemon again when it dies.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from holdfast_keeper import adopt, bundle, cgroups, failpoints, kernel, log, requests
from holdfast_keeper.bundle import KeeperDir
from holdfast_keeper.cgroups import Groups, ProcessLimits
from holdfast_keeper.connections import (
    EPISODE,
    READ,
    Connection,
    Descriptors,
    DescriptorStore,
    HolderLink,
    Loop,
    Timer,
    is_owner,
)
from holdfast_keeper.ending import Exits, OomWatch, Stopper
from holdfast_keeper.held_command import HeldCommand, Streams, groups_of
from holdfast_keeper.output import Quota
from holdfast_keeper.starter import Starter

_SWEEP_PAUSE = 5.0
_ACCEPT_PAUSE = 0.5
#: How often the directory is looked at: it may be deleted.
_DIRECTORY_PAUSE = 5.0
#: A keeper without commands waits this long for the first `hello`.
_HELLO_TIMEOUT = 5.0
#: Before the next look whether a start is under way, which an upgrade waits for.
_RENEW_PAUSE = 0.01
#: The exit status of a keeper that makes way for a newer release. Not 0, after which the anchor exits, too.
_RENEWED = 75
#: The pause before the daemon is started again doubles up to the longest.
_FIRST_RESTART = 0.1
_LONGEST_RESTART = 60.0
#: A daemon that was started and lives is given this time to connect, before another one is started.
_START_BUDGET = 10.0
#: A daemon that lived for this long is healthy: the pause before its next restart is short again.
_HEALTHY_AFTER = 30.0
#: The signals that anchor and keeper ignore, and the daemon and commands do not.
IGNORED_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTERM, signal.SIGTSTP)


class Keeper:
    def __init__(self, keeper_dir: KeeperDir, anchor: socket.socket, store: DescriptorStore) -> None:
        kernel.name_process("keeper", keeper_dir.path)
        kernel.become_subreaper()
        kernel.shorten_slice()
        self.dir = keeper_dir
        self.loop = Loop()
        self.groups = Groups.of_place(keeper_dir.path)
        self.limits = ProcessLimits(self.groups)
        self.settings = keeper_dir.read_settings()
        self.quota = Quota(self.settings.get("log_total"))
        self.commands: dict[str, HeldCommand] = {}
        self.connections: list[Connection] = []
        self.starter = Starter(self)
        self.stopper = Stopper(self)
        self.streams = Streams(self)
        self.exits = Exits(self)
        self.oom = OomWatch(self)
        self.daemon_restart = DaemonRestart(self)

        self._inherited = store
        self._anchor = HolderLink(self.loop, anchor, lambda header, fds: None, self._anchor_gone)
        self._holders: list[HolderLink] = []
        #: Connected, and not done offering.
        self._new_holders: set[HolderLink] = set()
        self._offers_until = time.monotonic() + adopt.OFFER_TIME
        self._anchor_is_gone = False
        self._is_deleted = False
        self._refused_at = float("-inf")
        #: Bundles of the last keeper that could not be adopted yet, and why.
        self.unadopted: dict[str, adopt.Unadopted] = {}
        self._sweep: Timer | None = None

    def run(self) -> DescriptorStore:
        """Work until no command is left (then the process exits), or until the anchor is gone (then it returns)."""
        adopt.adopt_all(self, self._inherited)
        self._listen()
        gc.freeze()  # these objects stay
        self.exits.listen_for_children()
        self.sweep_groups()
        self.loop.when_idle(self._index_archives)
        self.loop.when_idle(self._sweep_old_limits)
        self.loop.when_idle(self._sweep_dead_instances)
        self.loop.after(_DIRECTORY_PAUSE, self._check_directory)
        self.loop.after(_HELLO_TIMEOUT, self.exit_if_done)
        self.loop.run()
        if self._anchor_is_gone:
            return self._hand_over()
        self.starter.dismiss()
        self.limits.close()
        self.groups.close()
        os._exit(0)

    def hold(self, command: HeldCommand) -> None:
        """Take charge of a command that runs, or that has ended and is not archived."""
        self.commands[command.id] = command
        self.exits.expect(command)
        self.oom.begin(command)
        self.streams.begin(command)
        self.exits.archive_if_complete(command)

    def is_current(self, command: HeldCommand) -> bool:
        """Whether this object still stands for its process: timers and queued events may outlive it."""
        return self.commands.get(command.id) is command

    def awaits_offer(self, command: HeldCommand) -> bool:
        """Whether a holder may still offer a descriptor that this command lacks."""
        return time.monotonic() < self._offers_until and adopt.may_be_offered(command)

    def report(self, process_id: str) -> dict[str, Any] | None:
        """The report of a process, held or archived; None when there is no such process."""
        command = self.commands.get(process_id)
        if command is not None:
            return command.report()
        before = self.starter.report_before(process_id)
        return before if before is not None else self._finished_report(process_id)

    def _finished_report(self, process_id: str) -> dict[str, Any] | None:
        directory = bundle.find(self.dir.path, process_id)
        return bundle.finished_report(process_id, directory) if directory is not None else None

    def publish(self, fact: dict[str, Any]) -> None:
        for connection in list(self.connections):
            if connection.is_daemon:
                connection.send(fact)

    def ready_holders(self) -> list[HolderLink]:
        """The holders that take descriptors at once."""
        return [holder for holder in (self._anchor, *self._holders) if holder.is_ready]

    def deposit(self, process_id: str, fds: Descriptors, pid: int, but: Sequence[HolderLink] = ()) -> None:
        """Send the descriptors to every holder, but for some. Once this returns, no single crash loses them."""
        for holder in (self._anchor, *self._holders):
            if holder not in but:
                holder.hold(process_id, fds, pid=pid)

    def withdraw(self, process_id: str, names: list[str] | None = None) -> None:
        for holder in (self._anchor, *self._holders):
            holder.drop(process_id, names)

    def exit_if_done(self) -> None:
        """Exit when no command is left and the daemon has stopped on purpose."""
        held = self.commands or any(one.fds for one in self.unadopted.values())
        if self.daemon_restart.was_left and not held and not self.starter.is_busy and not self.stopper.is_busy:
            self.loop.stop()

    def renew(self, argv: list[str]) -> None:
        """Exit, so that the anchor executes the newer release with this command line."""
        if self.starter.is_busy or not self._anchor.is_ready:
            self.loop.after(_RENEW_PAUSE, partial(self.renew, argv))
            return
        failpoints.reach("renew-asked")
        self._anchor.renew(argv)
        self.starter.dismiss()
        os._exit(_RENEWED)

    def sweep_groups(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        kept = self.starter.groups().union(*(groups_of(command.born) for command in self.commands.values()))
        if any([self.groups.sweep(kept), self.limits.sweep(kept)]):
            self.sweep_groups_later()

    def sweep_groups_later(self) -> None:
        """Leftovers of a command may still be in its group: try again until they are gone."""
        if self._sweep is None:
            self._sweep = self.loop.after(_SWEEP_PAUSE, self.sweep_groups)

    def guarded(self, command: HeldCommand, run: Callable[..., None]) -> Callable[..., None]:
        def guarded(*args: Any) -> None:
            if command.quarantine is None:
                self.safely(command.id, lambda: run(*args))

        return guarded

    def safely(self, process_id: str, run: Callable[[], None]) -> None:
        """Run it so that a failure on one bundle harms no other. A failure puts the bundle in quarantine."""
        try:
            run()
        except Exception as failed:  # noqa: BLE001 - one bad bundle must not end the keeper
            command = self.commands.get(process_id)
            if command is None or time.monotonic() - command.failed_at > EPISODE:
                log.write_traceback(f"keeper: {process_id}")
            if command is not None:
                self._quarantine(command, f"{type(failed).__name__}: {failed}")

    def _quarantine(self, command: HeldCommand, why: str) -> None:
        """Leave the bundle alone until the next attempt, which comes after a pause that grows."""
        if time.monotonic() - command.failed_at > EPISODE:
            command.retry_pause = 0.0
        command.quarantine, command.failed_at = why, time.monotonic()
        for fd in command.fds.values():
            self.loop.unwatch(fd)
        self.publish({"fact": "quarantined", "id": command.id, "message": why})
        command.retry_pause = adopt.retry_pause(command.retry_pause)
        self.loop.after(command.retry_pause, partial(self._retry, command))

    def _retry(self, command: HeldCommand) -> None:
        """Go on from the state of the bundle, as a new keeper would."""
        if not self.is_current(command):
            return
        command.quarantine = None
        self.safely(command.id, partial(self._go_on, command))
        if command.quarantine is None:
            log.write(f"keeper: {command.id}: recovered")
            self.publish({"fact": "recovered", "id": command.id})

    def _go_on(self, command: HeldCommand) -> None:
        self.exits.expect(command)
        self.oom.begin(command)
        self.exits.record_if_dead(command)
        self.streams.go_on(command)
        self.exits.archive_if_complete(command)

    def _listen(self) -> None:
        self.loop.watch(self.dir.control.fileno(), READ, lambda _: self._accept())
        self.loop.watch(self.dir.fd_store.fileno(), READ, lambda _: self._accept_holder())

    def _next_peer(self, listener: socket.socket) -> socket.socket | None:
        """Accept a peer of our own user. None for others, and at the limit of open files, which is retried later."""
        try:
            sock, _ = listener.accept()
        except BlockingIOError:
            return None
        except OSError as failed:
            if time.monotonic() - self._refused_at > EPISODE:
                log.write(f"keeper: cannot accept, and tries again: {failed}")
            self._refused_at = time.monotonic()
            for each in (self.dir.control, self.dir.fd_store):
                self.loop.unwatch(each.fileno())
            self.loop.after(_ACCEPT_PAUSE, self._listen)
            return None
        if is_owner(sock):
            return sock
        sock.close()
        return None

    def _accept(self) -> None:
        sock = self._next_peer(self.dir.control)
        if sock is not None:
            serve = lambda connection, message: requests.serve(self, connection, message)  # noqa: E731
            self.connections.append(Connection(self.loop, sock, serve, self._disconnected))

    def _disconnected(self, connection: Connection) -> None:
        self.connections.remove(connection)
        self.daemon_restart.lost(connection)

    def _accept_holder(self) -> None:
        sock = self._next_peer(self.dir.fd_store)
        if sock is None:
            return
        offered: set[str] = set()

        def message(header: dict[str, Any], fds: list[int]) -> None:
            if header["op"] == "offer":
                offered.add(header["id"])
                # Raises where some did not arrive, at the limit of open files: the next keeper is offered them again.
                adopt.accept_offer(self, header["id"], dict(zip(header["names"], fds, strict=True)), header.get("pid"))
            elif header["op"] == "offered":
                self._add_holder(holder, offered)

        def closed() -> None:
            self._new_holders.discard(holder)
            if holder in self._holders:
                self._holders.remove(holder)

        holder = HolderLink(self.loop, sock, message, closed)
        self._new_holders.add(holder)

    def _add_holder(self, holder: HolderLink, offered: set[str]) -> None:
        self._new_holders.discard(holder)
        self._holders.append(holder)
        self._offers_until = 0.0
        everything: dict[str, tuple[Descriptors, int | None]]
        everything = {key: (fds, None) for key, fds in self.starter.under_way().items()}
        everything |= {command.id: (command.fds, command.born["pid"]) for command in self.commands.values()}
        everything |= {key: (one.fds, one.pid) for key, one in self.unadopted.items()}
        for process_id in offered - set(everything):
            holder.drop(process_id)
        for process_id, (fds, pid) in everything.items():
            holder.hold(process_id, fds, pid=pid)

    def _anchor_gone(self) -> None:
        self._anchor_is_gone = True
        self.loop.stop()

    def _hand_over(self) -> DescriptorStore:
        """Close everything but the commands' descriptors: this process becomes the anchor and holds them."""
        store = DescriptorStore()
        for command in self.commands.values():
            store.hold(command.id, list(command.fds), list(command.fds.values()), command.born["pid"])
            for pump in command.pumps.values():
                pump.log.close()
        for process_id, fds in self.starter.under_way().items():
            store.hold(process_id, list(fds), list(fds.values()))
        for process_id, one in self.unadopted.items():
            store.hold(process_id, list(one.fds), list(one.fds.values()), one.pid)
        self.daemon_restart.was_left = True  # closing the connections below must not start a second daemon
        for connection in list(self.connections):
            connection.close()
        for holder in (self._anchor, *self._holders, *self._new_holders):
            holder.close()
        self.starter.dismiss()
        self.exits.close()
        self.loop.close()
        return store

    def _check_directory(self) -> None:
        """When the directory was deleted: go on while a command runs, then exit."""
        self.loop.after(_DIRECTORY_PAUSE, self._check_directory)
        if self.dir.exists():
            return
        if not self._is_deleted:
            log.write(f"keeper: {self.dir.path} is gone")
            self._is_deleted = True
        if self.starter.is_busy or self.stopper.is_busy:
            return
        if any(connection.is_daemon for connection in self.connections):
            return  # it has to exit first: it would start another keeper
        if not any(command.tree.members() for command in self.commands.values()):
            self.loop.stop()

    def _sweep_old_limits(self) -> None:
        """Starts that the last keeper did not finish may have left groups."""
        if self.limits.find_existing():
            self.sweep_groups()

    def _sweep_dead_instances(self) -> None:
        """Instances that were killed leave empty cgroups."""
        if self.groups.name is None:
            return
        for root in cgroups.of_other_instances(self.groups.name):
            self.loop.when_idle(partial(cgroups.remove_if_dead, root))

    def _index_archives(self) -> None:
        """Count the logs of ended commands, too; after everything that runs was adopted."""
        with os.scandir(f"{self.dir.path}/{bundle.DONE}") as entries:
            paths = [(entry.stat().st_mtime, entry.path) for entry in entries]
        for _, path in sorted(paths):
            self.loop.when_idle(partial(self.quota.archive, path))


class DaemonRestart:
    """Starts the daemon again when it dies without having sent `leave`."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._pause = _FIRST_RESTART
        self._started, self._started_at = 0, 0.0
        #: Whether the daemon has stopped on purpose. Also true where none has ever connected.
        self.was_left = bool(keeper.settings.get("left")) or not keeper.settings
        if not self.was_left and keeper.settings.get("revive"):
            keeper.loop.after(1.0, self._look)  # it may have died together with the last keeper

    def arrived(self) -> None:
        self.was_left = False
        self._keeper.loop.after(_HEALTHY_AFTER, self._reset_pause)

    def lost(self, connection: Connection) -> None:
        if connection.has_left:
            self.was_left = True
            self._keeper.exit_if_done()
        elif connection.is_daemon:
            self._keeper.loop.after(self._pause, self._look)

    def _look(self) -> None:
        argv = self._keeper.settings.get("revive")
        if self.was_left or not argv or any(connection.is_daemon for connection in self._keeper.connections):
            return
        if not self._keeper.dir.exists():  # deleted: the daemon would create it again
            return
        if self._is_starting():
            self._keeper.loop.after(_FIRST_RESTART, self._look)
            return
        self._pause = min(self._pause * 2, _LONGEST_RESTART)
        self._keeper.loop.after(self._pause, self._look)
        try:
            self._started = os.posix_spawn(
                argv[0], argv, os.environ, setsid=True, setsigmask=(), setsigdef=IGNORED_SIGNALS
            )
            self._started_at = time.monotonic()
        except OSError as failed:
            log.write(f"keeper: cannot start the daemon: {failed}")

    def _is_starting(self) -> bool:
        """Whether the last one that was started may still connect: on a busy machine, more of them would not help."""
        found = kernel.stat(self._started) if self._started else None
        is_alive = found is not None and not found.is_dead
        return is_alive and time.monotonic() - self._started_at < _START_BUDGET

    def _reset_pause(self) -> None:
        if any(connection.is_daemon for connection in self._keeper.connections):
            self._pause = _FIRST_RESTART
