"""The keeper: one loop that starts commands, moves their output, buries them, and answers the daemon.

It owns every bundle of its place and keeps nothing in memory that a successor would miss. The work is done in
`starter`, `flow`, `ends` and `stopper`; here is what they share.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast_keeper import adopt, bundle, fd_store, kernel, log, requests
from holdfast_keeper.control import Connection, is_owner
from holdfast_keeper.daemon_restart import DaemonRestart
from holdfast_keeper.eviction import Eviction
from holdfast_keeper.exits import Exits
from holdfast_keeper.groups import Groups
from holdfast_keeper.held_command import HeldCommand, finished_report, groups_of
from holdfast_keeper.keeper_dir import KeeperDir
from holdfast_keeper.limits import ProcessLimits
from holdfast_keeper.loop import READ, Loop, Timer
from holdfast_keeper.oom import OomWatch
from holdfast_keeper.quota import Quota
from holdfast_keeper.starter import Starter
from holdfast_keeper.stopper import Stopper
from holdfast_keeper.streams import Streams

_SWEEP_PAUSE = 5.0
_ACCEPT_PAUSE = 0.5
#: Whoever started us is given this long to say hello.
_ARRIVAL_TIME = 5.0
_FAILURES_BEFORE_QUARANTINE = 2


class Keeper:
    def __init__(self, keeper_dir: KeeperDir, anchor: socket.socket, store: fd_store.DescriptorStore) -> None:
        kernel.name_process("holdfast-keeper")
        kernel.become_subreaper()
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
        self.eviction = Eviction(self)
        self._inherited = store
        self._anchor = fd_store.HolderLink(self.loop, anchor, lambda header, fds: None, self._anchor_gone)
        self._holders: list[fd_store.HolderLink] = []
        self._offers_until = time.monotonic() + adopt.OFFER_TIME
        self._is_orphan = False
        self._sweep: Timer | None = None

    def run(self) -> fd_store.DescriptorStore:
        """Work until there is nothing left to hold (then it exits), or until the anchor is gone (then it returns)."""
        adopt.adopt_all(self, self._inherited)
        self._listen()
        gc.freeze()  # what is here now stays, and spares share it with us
        self.exits.listen_for_children()
        self.sweep_groups()
        self.loop.when_idle(self._index_archives)
        self.loop.when_idle(self._recall_limits)
        self.starter.refill_soon()
        self.loop.after(_ARRIVAL_TIME, self.end_if_done)
        self.loop.run()
        if self._is_orphan:
            return self._hand_over()
        self.starter.dismiss()
        self.limits.close()
        self.groups.close()
        os._exit(0)

    def hold(self, command: HeldCommand) -> None:
        """From now on it is ours."""
        self.commands[command.id] = command
        self.exits.expect(command)
        self.oom.begin(command)
        self.streams.begin(command)
        self.exits.archive_if_complete(command)

    def is_current(self, command: HeldCommand) -> bool:
        """Whether this very hold is still in charge: timers and queued events may outlive it."""
        return self.commands.get(command.id) is command

    def awaits_offer(self, command: HeldCommand) -> bool:
        """Whether what this hold lacks may still be offered: then it is too early to say that it is gone."""
        return time.monotonic() < self._offers_until and adopt.may_be_offered(command)

    def report(self, process_id: str) -> dict[str, Any] | None:
        """What is known of a process, held or not; None when nothing is."""
        command = self.commands.get(process_id)
        if command is not None:
            return command.report()
        before = self.starter.report_before(process_id)
        return before if before is not None else self._finished_report(process_id)

    def _finished_report(self, process_id: str) -> dict[str, Any] | None:
        directory = bundle.find(self.dir.path, process_id)
        return finished_report(process_id, directory) if directory is not None else None

    def publish(self, fact: dict[str, Any]) -> None:
        for connection in list(self.connections):
            if connection.is_daemon:
                connection.send(fact)

    def deposit(self, process_id: str, fds: fd_store.Descriptors, pid: int) -> None:
        """Into the hands of everyone who holds; once this returns no single death takes them away."""
        self._anchor.hold(process_id, fds, pid=pid)
        for holder in self._holders:
            holder.hold(process_id, fds, pid=pid)

    def withdraw(self, process_id: str, names: list[str] | None = None) -> None:
        for holder in (self._anchor, *self._holders):
            holder.drop(process_id, names)

    def end_if_done(self) -> None:
        """Nothing held and a daemon that left on purpose: our work is done."""
        if self.daemon_restart.was_left and not self.commands and not self.starter.is_busy and not self.stopper.is_busy:
            self.loop.stop()

    def sweep_groups(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        kept = self.starter.groups().union(*(groups_of(command.born) for command in self.commands.values()))
        if any([self.groups.sweep(kept), self.limits.sweep(kept)]):
            self.sweep_groups_later()

    def sweep_groups_later(self) -> None:
        """Leftovers of a command are still in its group; look again until they are gone."""
        if self._sweep is None:
            self._sweep = self.loop.after(_SWEEP_PAUSE, self.sweep_groups)

    def guarded(self, command: HeldCommand, run: Callable[..., None]) -> Callable[..., None]:
        def guarded(*args: Any) -> None:
            self.safely(command.id, lambda: run(*args))

        return guarded

    def safely(self, process_id: str, run: Callable[[], None]) -> None:
        """A bundle that we fail on must not take the others down: the second failure puts it in quarantine."""
        try:
            run()
        except Exception:  # noqa: BLE001 - one bad bundle must not end what all others rely on
            log.write_traceback(f"keeper: {process_id}")
            command = self.commands.get(process_id)
            if command is not None:
                command.failures += 1
                if command.failures >= _FAILURES_BEFORE_QUARANTINE:
                    self._quarantine(command)

    def _quarantine(self, command: HeldCommand) -> None:
        command.is_quarantined = True
        for fd in command.fds.values():
            self.loop.unwatch(fd)
        self.publish({"fact": "quarantined", "id": command.id, "message": "the keeper failed on this process twice"})

    def _listen(self) -> None:
        self.loop.watch(self.dir.control.fileno(), READ, lambda _: self._accept())
        self.loop.watch(self.dir.fd_store.fileno(), READ, lambda _: self._accept_holder())

    def _next_peer(self, listener: socket.socket) -> socket.socket | None:
        """Whoever knocked, if we are its own; None, and a pause, when there is no descriptor to be had for it."""
        try:
            sock, _ = listener.accept()
        except BlockingIOError:
            return None
        except OSError as failed:
            log.write(f"keeper: cannot accept: {failed}")
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
                adopt.accept_offer(self, header["id"], dict(zip(header["names"], fds, strict=True)), header.get("pid"))
            elif header["op"] == "offered":
                self._add_holder(holder, offered)

        def closed() -> None:
            if holder in self._holders:
                self._holders.remove(holder)

        holder = fd_store.HolderLink(self.loop, sock, message, closed)

    def _add_holder(self, holder: fd_store.HolderLink, offered: set[str]) -> None:
        self._holders.append(holder)
        self._offers_until = 0.0
        everything = {command.id: (command.fds, command.born["pid"]) for command in self.commands.values()}
        everything |= self.starter.under_way()
        for process_id in offered - set(everything):
            holder.drop(process_id)
        for process_id, (fds, pid) in everything.items():
            holder.hold(process_id, fds, pid=pid)

    def _anchor_gone(self) -> None:
        self._is_orphan = True
        self.loop.stop()

    def _hand_over(self) -> fd_store.DescriptorStore:
        """Let go of everything but the descriptors, which the anchor that we become goes on holding."""
        store = fd_store.DescriptorStore()
        for command in self.commands.values():
            store.hold(command.id, list(command.fds), list(command.fds.values()), command.born["pid"])
            for pump in command.pumps.values():
                pump.log.close()
        for process_id, (fds, pid) in self.starter.under_way().items():
            store.hold(process_id, list(fds), list(fds.values()), pid)
        self.daemon_restart.was_left = True  # closing the connections below must not bring up a second daemon
        for connection in list(self.connections):
            connection.close()
        for holder in (self._anchor, *self._holders):
            holder.close()
        self.starter.dismiss()
        signal.set_wakeup_fd(-1)
        self.loop.close()
        return store

    def _recall_limits(self) -> None:
        """What a predecessor was about to start may have left groups."""
        if self.limits.recall():
            self.sweep_groups()

    def _index_archives(self) -> None:
        """Logs of the dead count, too; but not before everything alive has been taken care of."""
        with os.scandir(f"{self.dir.path}/{bundle.DONE}") as entries:
            paths = [(entry.stat().st_mtime, entry.path) for entry in entries]
        for _, path in sorted(paths):
            self.loop.when_idle(partial(self.quota.archive, path))
