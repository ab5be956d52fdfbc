"""A blocking link that speaks HTTP: the same requests and replies as `Link`, each on a connection of its own."""

from __future__ import annotations

import select
import socket
import time

from holdfast.client.http.exchange import HttpExchange, check_listener
from holdfast.client.link import Link, LinkCut, Want
from holdfast.errors import Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.http.exchange import HttpAddress
    from holdfast.client.link import Answer
    from holdfast.wire.frames import Message

_READ_SIZE = 1 << 18
_CONNECT_TIMEOUT = 10.0
_CONNECT_INTERVAL = 0.05
#: How long a daemon that was reachable before may take to come back.
RECONNECT_TIMEOUT = 15.0


class HttpLink(Link):
    """As `Link`: not for several threads at once."""

    def __init__(
        self,
        address: HttpAddress,
        session: str | None,
        connect_timeout: float = RECONNECT_TIMEOUT,
        strict: bool = False,
    ) -> None:
        self._address = address
        self._strict = strict
        self._session = session
        self._epoll = select.epoll()
        self._under_way: dict[int, tuple[socket.socket, HttpExchange]] = {}
        self._idle: socket.socket | None = None
        self._last_rid = 0
        self.is_usable = True
        self.daemon: Message = {}
        try:
            self._idle = self._connect(connect_timeout)
        except BaseException:
            self._epoll.close()
            raise

    def fileno(self) -> int:
        return self._epoll.fileno()

    def close(self) -> None:
        self.is_usable = False
        self._epoll.close()
        for sock, _ in self._under_way.values():
            sock.close()
        if self._idle is not None:
            self._idle.close()

    def is_idle(self) -> bool:
        return self.is_usable and not self._under_way

    def ask(self, op: str, arguments: Message) -> int:
        exchange = HttpExchange(self._last_rid + 1, op, arguments, self._address, self._session, self._strict)
        sock = self._take()
        try:
            sock.sendall(exchange.request)
        except OSError as cut:
            sock.close()
            raise self._cut(cut) from cut
        self._last_rid += 1
        self._under_way[sock.fileno()] = sock, exchange
        self._epoll.register(sock.fileno(), select.EPOLLIN | (select.EPOLLOUT if exchange.uploads else 0))
        return exchange.rid

    def upload(self, rid: int, data: bytes) -> None:
        for sock, exchange in self._under_way.values():
            if exchange.rid == rid:
                try:
                    sock.sendall(exchange.piece(data))
                except OSError as cut:
                    raise self._cut(cut) from cut
                if data:
                    self._epoll.modify(sock.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def cancel(self, rid: int) -> None:
        """A request is given up by closing its connection."""
        for sock, exchange in list(self._under_way.values()):
            if exchange.rid == rid:
                self._drop(sock)
                sock.close()

    def receive(self, timeout: float | None = None) -> list[Answer]:
        answers: list[Answer] = []
        if not self._under_way and timeout is None:
            raise self._cut("there is no request")
        for fd, events in self._epoll.poll(timeout):
            sock, exchange = self._under_way[fd]
            if events == select.EPOLLOUT:
                self._epoll.modify(fd, select.EPOLLIN)
                answers.append(Want(exchange.rid, 1))
                continue
            try:
                data = sock.recv(_READ_SIZE)
                answers += exchange.feed(data)
            except (OSError, LinkCut) as cut:
                raise self._cut(cut) from cut
            if not data:
                raise self._cut("the daemon closed the connection")
            if exchange.is_over:
                self._drop(sock)
                self._keep(sock) if exchange.keeps_alive else sock.close()
        return answers

    def _take(self) -> socket.socket:
        """A connection for one exchange: the idle one, if it is still open."""
        sock, self._idle = self._idle, None
        if sock is not None:
            if not select.select([sock], [], [], 0)[0]:
                return sock
            sock.close()
        return self._connect(RECONNECT_TIMEOUT)

    def _keep(self, sock: socket.socket) -> None:
        if self._idle is None:
            self._idle = sock
        else:
            sock.close()

    def _drop(self, sock: socket.socket) -> None:
        del self._under_way[sock.fileno()]
        self._epoll.unregister(sock.fileno())

    def _connect(self, connect_timeout: float) -> socket.socket:
        until = time.monotonic() + connect_timeout
        while True:
            try:
                sock = socket.create_connection((self._address.host, self._address.port), _CONNECT_TIMEOUT)
            except OSError as refused:
                if time.monotonic() > until:
                    raise unreachable(self._address, refused) from refused
                time.sleep(_CONNECT_INTERVAL)
            else:
                sock.settimeout(None)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    check_listener(self._address, sock)
                except BaseException:
                    sock.close()
                    raise
                return sock

    def _unanswered(self, op: str) -> Unreachable:
        self.is_usable = False
        return Unreachable(f"the daemon at {self._address.authority} does not answer {op!r}")


def unreachable(address: HttpAddress, why: OSError) -> Unreachable:
    what = f"no daemon answers at http://{address.authority}: {why.strerror or why}"
    return Unreachable(what, next="holdfast daemon http")


def open_http_link(address: HttpAddress, session: str | None, connect_timeout: float, strict: bool = False) -> HttpLink:
    """A link to a daemon. With `connect_timeout` 0, the daemon must answer and accept the token now.

    Raises Unreachable, Denied.
    """
    link = HttpLink(address, session, connect_timeout, strict)
    if connect_timeout == 0.0:
        try:
            link.daemon, _ = link.call("status", {}, _CONNECT_TIMEOUT)
        except BaseException:
            link.close()
            raise
    return link
