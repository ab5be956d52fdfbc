"""The nursery: a fork server. Its only work is to fork spares, as children of the keeper.

A fork makes every page of the forking process copy-on-write, which would slow down the keeper's next start. The
nursery is forked once, while the keeper is small, and bears that cost instead. Its children are in their cgroup from
the start and are children of the keeper (CLONE_PARENT). Where that is not supported, the keeper forks itself.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections import deque
from collections.abc import Callable
from typing import NoReturn

from holdfast_keeper import fd_store, kernel, log
from holdfast_keeper.loop import READ, Loop
from holdfast_keeper.spare import Spare, close_all_but, fork_spare, live

#: The errors of a kernel, or a sandbox, that does not support children for our parent.
_NEVER = (errno.ENOSYS, errno.EPERM, errno.EINVAL)


class _Order:
    """A spare that was ordered: its cgroup, and our end of the connection to it."""

    __slots__ = ("conversation", "group")

    def __init__(self, group: str | None, conversation: socket.socket) -> None:
        self.group = group
        self.conversation = conversation


class Nursery:
    """`on_spare` is called with each spare that was ordered, in order; `on_failure` when one cannot be forked."""

    def __init__(
        self,
        loop: Loop,
        file_limit: tuple[int, int],
        on_spare: Callable[[Spare], None],
        on_failure: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._file_limit = file_limit
        self._on_spare = on_spare
        self._on_failure = on_failure
        self._orders: deque[_Order] = deque()
        self._line: socket.socket | None = None
        self._open()

    @property
    def on_order(self) -> int:
        return len(self._orders)

    def groups(self) -> set[str]:
        return {order.group for order in self._orders if order.group is not None}

    def order(self, group: str | None) -> None:
        """Order a spare. Raises OSError when none can be forked."""
        if self._line is None:
            self._on_spare(fork_spare(group, self._file_limit))
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            fd_store.send(self._line, {"group": group}, [theirs.fileno()])
        except ConnectionError:
            pass  # the nursery was killed: the next one gets this order, too
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._orders.append(_Order(group, ours))

    def close(self) -> None:
        if self._line is not None:
            self._loop.unwatch(self._line.fileno())
            self._line.close()
            self._line = None
        while self._orders:
            self._orders.popleft().conversation.close()

    def _open(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            if os.fork() == 0:
                _nurse(theirs, self._file_limit)
        except OSError as failed:
            log.write(f"keeper: cannot start the fork server: {failed}")
            ours.close()
            return
        finally:
            theirs.close()
        ours.setblocking(False)
        self._line = ours
        self._loop.watch(ours.fileno(), READ, lambda _: self._answered())

    def _answered(self) -> None:
        assert self._line is not None
        try:
            answer = self._line.recv(64)
        except BlockingIOError:
            return
        except ConnectionError:
            answer = b""
        if not answer:
            self._reopen()
            return
        order = self._orders.popleft()
        pid = int(answer)
        if pid > 0:
            self._born(order, pid)
            return
        order.conversation.close()
        if -pid in _NEVER:
            log.write("keeper: this system does not support the fork server; the keeper forks itself")
            groups = [order.group, *(other.group for other in self._orders)]
            self.close()
            self._order_again(groups)
        else:
            self._on_failure(OSError(-pid, os.strerror(-pid)))

    def _born(self, order: _Order, pid: int) -> None:
        order.conversation.setblocking(False)
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as failed:
            order.conversation.close()
            self._on_failure(failed)
            return
        found = kernel.stat(pid)
        if found is None:  # it was killed and reaped already
            order.conversation.close()
            os.close(pidfd)
            self._order_again([order.group])
        else:
            self._on_spare(Spare(pid, pidfd, found.start, order.conversation, order.group))

    def _reopen(self) -> None:
        """The nursery was killed: open orders go to a new one."""
        groups = [order.group for order in self._orders]
        self.close()
        self._open()
        self._order_again(groups)

    def _order_again(self, groups: list[str | None]) -> None:
        try:
            for group in groups:
                self.order(group)
        except OSError as failed:
            self._on_failure(failed)


def _nurse(line: socket.socket, file_limit: tuple[int, int]) -> NoReturn:
    """The main loop of the nursery: fork what is ordered, until the keeper is gone."""
    try:
        signal.set_wakeup_fd(-1)
        close_all_but(line.fileno())
        kernel.name_process("holdfast-nurse")
        while True:
            received = fd_store.receive(line)
            if received is None:
                break
            request, (conversation,) = received
            line.send(b"%d" % _deliver(line, request["group"], conversation, file_limit))
            os.close(conversation)
    except OSError:
        pass  # the keeper is gone
    os._exit(0)


def _deliver(line: socket.socket, group: str | None, conversation: int, file_limit: tuple[int, int]) -> int:
    """The pid of a new spare, or a negative error number."""
    try:
        pid = kernel.fork_for_parent(group)
    except OSError as failed:
        return -(failed.errno or errno.EINVAL)
    if pid == 0:
        line.detach()
        live(socket.socket(fileno=conversation), None, file_limit)
    return pid
