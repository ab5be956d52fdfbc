"""The anchor: parent of the keeper, subreaper, and second holder of every descriptor.

Anchor and keeper are two roles of one program. When the keeper dies, the anchor forks a new one, which inherits every
descriptor. When the anchor dies, the keeper becomes the anchor and forks a new keeper. Bundles and descriptors are all
that a successor needs.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time

from holdfast_keeper import bundle, cgroups, kernel, log, renew
from holdfast_keeper.bundle import KeeperDir
from holdfast_keeper.connections import DescriptorStore, receive_datagram
from holdfast_keeper.keeper import IGNORED_SIGNALS, Keeper

#: A keeper that fails by itself is not started again faster than this.
_PAUSE_AFTER_FAILURE = 0.5
#: At the end: how often, and at which interval, the cgroups are tried until they are empty.
_SWEEP_TRIES = 50
_SWEEP_PAUSE = 0.02
#: The kernel has what was sent. To fetch it at once would compete with the start that it belongs to.
_FETCH_PAUSE = 0.03
#: Before the next attempt to record an exit status that the disk refused.
_WRITE_PAUSE = 0.25


def live(keeper_dir: KeeperDir, store: DescriptorStore) -> None:
    """Be the anchor, or become it, until no command is left. `store` has what the last release held."""
    cgroups.leave_command_groups()
    kernel.become_subreaper()
    _ignore_signals()
    while True:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            keeper = os.fork()
        except OSError as failed:  # the process limit: go on holding the descriptors
            log.write(f"anchor: cannot fork a keeper: {failed}")
            ours.close()
            theirs.close()
            time.sleep(_PAUSE_AFTER_FAILURE)
            continue
        if keeper == 0:
            ours.close()
            store = Keeper(keeper_dir, theirs, store).run()
            continue  # the anchor is gone: this process is the anchor now
        theirs.close()
        kernel.name_process("anchor", keeper_dir.path)
        watch = _Watch(keeper_dir, store, keeper, ours)
        status = watch.run()
        ours.close()
        if watch.successor is not None:
            renew.execute(watch.successor, keeper_dir, store)
        if status == 0 or (not keeper_dir.exists() and not any(map(_is_alive, store.by_pid))):
            _clear_groups(keeper_dir)
            keeper_dir.release()
            return
        if not os.WIFSIGNALED(status):
            time.sleep(_PAUSE_AFTER_FAILURE)


def _clear_groups(keeper_dir: KeeperDir) -> None:
    """Remove the cgroups. Children that were not started take a moment to leave theirs."""
    groups_of_place = cgroups.Groups.of_place(keeper_dir.path)
    for _ in range(_SWEEP_TRIES):
        if not groups_of_place.sweep(set()):
            break
        time.sleep(_SWEEP_PAUSE)
    groups_of_place.close()


class _Watch:
    """The anchor's work while one keeper lives."""

    def __init__(self, keeper_dir: KeeperDir, store: DescriptorStore, keeper: int, line: socket.socket) -> None:
        self._dir = keeper_dir
        self._store = store
        self._keeper = keeper
        self._line = line
        self._status: int | None = None
        #: The command line of a newer release, which takes over when the keeper has exited.
        self.successor: list[str] | None = None

    def run(self) -> int:
        """Returns the wait status of the keeper once it is dead and everything that it deposited is in the store."""
        self._line.setblocking(False)
        wake, wakeup = os.pipe()
        for fd in (wake, wakeup):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        events = select.poll()
        events.register(wake, select.POLLIN)
        deposits = select.poll()
        for fd in (wake, self._line.fileno()):
            deposits.register(fd, select.POLLIN)
        self._reap()
        while self._status is None:
            deposits.poll(_WRITE_PAUSE * 1000 if self._store.witnessed else None)
            events.poll(_FETCH_PAUSE * 1000)
            _empty(wake)
            self._take()
            self._reap()
            self._write_late_witnesses()
        # A child of the dead keeper may be about to send its descriptors: from here on it fails, and does not run.
        self._line.shutdown(socket.SHUT_RD)
        self._take()
        signal.set_wakeup_fd(-1)
        os.close(wake)
        os.close(wakeup)
        return self._status

    def _take(self) -> None:
        while True:
            try:
                received = receive_datagram(self._line)
            except BlockingIOError:
                return
            if received is None:
                return
            header, fds = received
            if header["op"] == "hold":
                self._store.hold(header["id"], header["names"], fds, header.get("pid"))
            elif header["op"] == "renew":
                self.successor = header["argv"]
            else:
                self._store.drop(header["id"], header["names"])

    def _reap(self) -> None:
        """Reap orphans. The exit status of a held command is recorded first."""
        while True:
            try:
                seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if seen is None:
                return
            process_id = self._store.by_pid.get(seen.si_pid) or self._just_started(seen.si_pid)
            if process_id is not None:
                self._witness(process_id, seen)
            _, status = os.waitpid(seen.si_pid, 0)
            if seen.si_pid == self._keeper:
                self._status = status

    def _just_started(self, pid: int) -> str | None:
        """The command with this pid, among those whose keeper was killed before it knew the pid itself."""
        if pid == self._keeper:
            return None
        for process_id in os.listdir(f"{self._dir.path}/{bundle.LIVE}"):
            if process_id not in self._store.pid_of:
                state = bundle.read_state(self._dir.live(process_id))
                if state is not None and state.born is not None and state.born["pid"] == pid:
                    return process_id
        return None

    def _witness(self, process_id: str, seen: os.waitid_result) -> None:
        exited = seen.si_code == os.CLD_EXITED
        status = seen.si_status << 8 if exited else seen.si_status
        self._store.witnessed[process_id] = seen.si_pid, {"status": status, "at": time.time()}
        try:
            self._write_witness(process_id)
        except OSError as failed:
            log.write(f"anchor: cannot record the exit status of {process_id} yet: {failed}")

    def _write_witness(self, process_id: str) -> None:
        """Raises OSError when the disk refuses it: then it stays in the store and is tried again."""
        pid, slot = self._store.witnessed[process_id]
        directory = self._dir.live(process_id)
        state = bundle.read_state(directory)
        # Of a later run, or of one whose exit was recorded meanwhile, it would be wrong.
        if state is not None and state.born is not None and state.born["pid"] == pid and state.exit is None:
            bundle.write_slot(directory, bundle.WITNESS, slot)
        del self._store.witnessed[process_id]

    def _write_late_witnesses(self) -> None:
        for process_id in list(self._store.witnessed):
            with contextlib.suppress(OSError):
                self._write_witness(process_id)


def _is_alive(pid: int) -> bool:
    found = kernel.stat(pid)
    return found is not None and not found.is_dead


def _ignore_signals() -> None:
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)


def _empty(pipe: int) -> None:
    try:
        while os.read(pipe, 512):
            pass
    except BlockingIOError:
        return
