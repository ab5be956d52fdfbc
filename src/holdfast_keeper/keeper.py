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

from holdfast_keeper import adopt, bundle, depot, kernel, log, requests
from holdfast_keeper.control import Connection, is_owner
from holdfast_keeper.ends import Ends
from holdfast_keeper.eviction import Eviction
from holdfast_keeper.flow import Flow
from holdfast_keeper.groups import Groups
from holdfast_keeper.hold import Hold, finished_report, groups_of
from holdfast_keeper.limits import ProcessLimits
from holdfast_keeper.loop import READ, Loop, Timer
from holdfast_keeper.oom import OomWatch
from holdfast_keeper.place import Place
from holdfast_keeper.quota import Quota
from holdfast_keeper.revival import Revival
from holdfast_keeper.starter import Starter
from holdfast_keeper.stopper import Stopper

_SWEEP_PAUSE = 5.0
_ACCEPT_PAUSE = 0.5
#: Whoever started us is given this long to say hello.
_ARRIVAL_TIME = 5.0
_FAILURES_BEFORE_QUARANTINE = 2


class Keeper:
    def __init__(self, place: Place, anchor: socket.socket, store: depot.DescriptorStore) -> None:
        kernel.name_process("holdfast-keeper")
        kernel.become_subreaper()
        self.place = place
        self.loop = Loop()
        self.groups = Groups.of_place(place.directory)
        self.limits = ProcessLimits(self.groups)
        self.settings = place.read_settings()
        self.quota = Quota(self.settings.get("log_total"))
        self.holds: dict[str, Hold] = {}
        self.connections: list[Connection] = []
        self.starter = Starter(self)
        self.stopper = Stopper(self)
        self.flow = Flow(self)
        self.ends = Ends(self)
        self.oom = OomWatch(self)
        self.revival = Revival(self)
        self.eviction = Eviction(self)
        self._inherited = store
        self._anchor = depot.Holder(self.loop, anchor, lambda header, fds: None, self._anchor_gone)
        self._depots: list[depot.Holder] = []
        self._offers_until = time.monotonic() + adopt.OFFER_TIME
        self._is_orphan = False
        self._sweep: Timer | None = None

    def run(self) -> depot.DescriptorStore:
        """Work until there is nothing left to hold (then it exits), or until the anchor is gone (then it returns)."""
        adopt.adopt_everything(self, self._inherited)
        self._listen()
        gc.freeze()  # what is here now stays, and spares share it with us
        self.ends.listen_for_children()
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

    def hold(self, hold: Hold) -> None:
        """From now on it is ours."""
        self.holds[hold.id] = hold
        self.ends.expect(hold)
        self.oom.begin(hold)
        self.flow.begin(hold)
        self.ends.complete(hold)

    def holds_still(self, hold: Hold) -> bool:
        """Whether this very hold is still in charge: timers and queued events may outlive it."""
        return self.holds.get(hold.id) is hold

    def is_awaiting(self, hold: Hold) -> bool:
        """Whether what this hold lacks may still be offered: then it is too early to say that it is gone."""
        return time.monotonic() < self._offers_until and adopt.may_be_offered(hold)

    def report(self, process_id: str) -> dict[str, Any] | None:
        """What is known of a process, held or not; None when nothing is."""
        hold = self.holds.get(process_id)
        if hold is not None:
            return hold.report()
        before = self.starter.report_before(process_id)
        return before if before is not None else self._finished_report(process_id)

    def _finished_report(self, process_id: str) -> dict[str, Any] | None:
        directory = bundle.find(self.place.directory, process_id)
        return finished_report(process_id, directory) if directory is not None else None

    def tell(self, fact: dict[str, Any]) -> None:
        for connection in list(self.connections):
            if connection.is_daemon:
                connection.send(fact)

    def deposit(self, process_id: str, fds: depot.Descriptors, pid: int) -> None:
        """Into the hands of everyone who holds; once this returns no single death takes them away."""
        self._anchor.hold(process_id, fds, pid=pid)
        for holder in self._depots:
            holder.hold(process_id, fds, pid=pid)

    def withdraw(self, process_id: str, names: list[str] | None = None) -> None:
        for holder in (self._anchor, *self._depots):
            holder.drop(process_id, names)

    def end_if_done(self) -> None:
        """Nothing held and a daemon that left on purpose: our work is done."""
        if self.revival.was_left and not self.holds and not self.starter.is_busy and not self.stopper.is_busy:
            self.loop.stop()

    def sweep_groups(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        kept = self.starter.groups().union(*(groups_of(hold.born) for hold in self.holds.values()))
        if any([self.groups.sweep(kept), self.limits.sweep(kept)]):
            self.sweep_groups_later()

    def sweep_groups_later(self) -> None:
        """Leftovers of a command are still in its group; look again until they are gone."""
        if self._sweep is None:
            self._sweep = self.loop.after(_SWEEP_PAUSE, self.sweep_groups)

    def guarded(self, hold: Hold, run: Callable[..., None]) -> Callable[..., None]:
        def guarded(*args: Any) -> None:
            self.safely(hold.id, lambda: run(*args))

        return guarded

    def safely(self, process_id: str, run: Callable[[], None]) -> None:
        """A bundle that we fail on must not take the others down: the second failure puts it in quarantine."""
        try:
            run()
        except Exception:  # noqa: BLE001 - one bad bundle must not end what all others rely on
            log.say_failure(f"keeper: {process_id}")
            hold = self.holds.get(process_id)
            if hold is not None:
                hold.failures += 1
                if hold.failures >= _FAILURES_BEFORE_QUARANTINE:
                    self._quarantine(hold)

    def _quarantine(self, hold: Hold) -> None:
        hold.is_quarantined = True
        for fd in hold.fds.values():
            self.loop.unwatch(fd)
        self.tell({"fact": "quarantined", "id": hold.id, "message": "the keeper failed on this process twice"})

    def _listen(self) -> None:
        self.loop.watch(self.place.control.fileno(), READ, lambda _: self._accept())
        self.loop.watch(self.place.depot.fileno(), READ, lambda _: self._accept_holder())

    def _next_peer(self, listener: socket.socket) -> socket.socket | None:
        """Whoever knocked, if we are its own; None, and a pause, when there is no descriptor to be had for it."""
        try:
            sock, _ = listener.accept()
        except BlockingIOError:
            return None
        except OSError as failed:
            log.say(f"keeper: cannot accept: {failed}")
            for each in (self.place.control, self.place.depot):
                self.loop.unwatch(each.fileno())
            self.loop.after(_ACCEPT_PAUSE, self._listen)
            return None
        if is_owner(sock):
            return sock
        sock.close()
        return None

    def _accept(self) -> None:
        sock = self._next_peer(self.place.control)
        if sock is not None:
            serve = lambda connection, message: requests.serve(self, connection, message)  # noqa: E731
            self.connections.append(Connection(self.loop, sock, serve, self._disconnected))

    def _disconnected(self, connection: Connection) -> None:
        self.connections.remove(connection)
        self.revival.lost(connection)

    def _accept_holder(self) -> None:
        sock = self._next_peer(self.place.depot)
        if sock is None:
            return
        offered: set[str] = set()

        def message(header: dict[str, Any], fds: list[int]) -> None:
            if header["op"] == "offer":
                offered.add(header["id"])
                adopt.take_back(self, header["id"], dict(zip(header["names"], fds, strict=True)), header.get("pid"))
            elif header["op"] == "offered":
                self._add_holder(holder, offered)

        def closed() -> None:
            if holder in self._depots:
                self._depots.remove(holder)

        holder = depot.Holder(self.loop, sock, message, closed)

    def _add_holder(self, holder: depot.Holder, offered: set[str]) -> None:
        self._depots.append(holder)
        self._offers_until = 0.0
        everything = {hold.id: (hold.fds, hold.born["pid"]) for hold in self.holds.values()}
        everything |= self.starter.under_way()
        for process_id in offered - set(everything):
            holder.drop(process_id)
        for process_id, (fds, pid) in everything.items():
            holder.hold(process_id, fds, pid=pid)

    def _anchor_gone(self) -> None:
        self._is_orphan = True
        self.loop.stop()

    def _hand_over(self) -> depot.DescriptorStore:
        """Let go of everything but the descriptors, which the anchor that we become goes on holding."""
        store = depot.DescriptorStore()
        for hold in self.holds.values():
            store.hold(hold.id, list(hold.fds), list(hold.fds.values()), hold.born["pid"])
            for pump in hold.pumps.values():
                pump.log.close()
        for process_id, (fds, pid) in self.starter.under_way().items():
            store.hold(process_id, list(fds), list(fds.values()), pid)
        self.revival.was_left = True  # closing the connections below must not bring up a second daemon
        for connection in list(self.connections):
            connection.close()
        for holder in (self._anchor, *self._depots):
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
        with os.scandir(f"{self.place.directory}/{bundle.DONE}") as entries:
            paths = [(entry.stat().st_mtime, entry.path) for entry in entries]
        for _, path in sorted(paths):
            self.loop.when_idle(partial(self.quota.archive, path))
