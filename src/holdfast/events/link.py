"""A WebSocket that a thread keeps open: when it is cut, it is opened again, after pauses that grow up to 30 s."""

from __future__ import annotations

import contextlib
import logging
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect, unix_connect

from holdfast.events.address import BusAddress

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 30.0
#: A link that lasted for so long was a good one, too.
_GOOD = 5.0
_LARGEST_MESSAGE = 16 << 20
#: What a link that is cut, or that brings invalid data, raises. Anything else is a fault of this program.
CUT = (OSError, WebSocketException, ValueError)
_LOG = logging.getLogger("holdfast.events.bridge")


class BridgeLink:
    """`path` says where to, each time; `talk` is called with the open WebSocket, and the link is cut when it returns.

    `refused` gets the status of an answer that opens no WebSocket.
    """

    def __init__(
        self,
        name: str,
        address: BusAddress,
        path: Callable[[], str],
        talk: Callable[[ClientConnection], None],
        refused: Callable[[int], None],
    ) -> None:
        self._address = address
        self._path = path
        self._talk = talk
        self._refused = refused
        self._stopping = threading.Event()
        self._socket: ClientConnection | None = None
        self._trouble = ""
        self._is_good = False
        self.is_open = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether what is said now goes nowhere."""
        return self._stopping.is_set() or not self.is_open.is_set()

    def stop(self) -> None:
        """Hang up for good."""
        self._stopping.set()
        if self._socket is not None:
            hang_up(self._socket)

    def prove(self) -> None:
        """The other side does its part: when this link is cut, the next attempt comes at once."""
        self._is_good = True

    def join(self, timeout: float) -> None:
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _keep(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            begun, self._is_good = time.monotonic(), False
            try:
                with self._open() as opened:
                    self._talk(opened)
            except InvalidStatus as refused:
                self._refused(refused.response.status_code)
                self._say(f"refused with status {refused.response.status_code}")
            except CUT as cut:
                self._say(str(cut) or type(cut).__name__)
            except Exception as broken:  # noqa: BLE001 - the top of a thread: a fault of ours cuts the link, and does not end the thread
                self._say(repr(broken), broken)
            is_good = self._is_good or time.monotonic() - begun > _GOOD
            pause = _FIRST_PAUSE if is_good else min(pause * 2, _LONGEST_PAUSE)
            self._stopping.wait(pause * random.uniform(0.5, 1.0))

    @contextmanager
    def _open(self) -> Iterator[ClientConnection]:
        address = self._address
        headers = {"Authorization": f"Bearer {address.token}"} if address.token else {}
        opening = unix_connect if address.path is not None else connect
        sock = address.connect()
        with opening(
            uri=f"{address.base}{self._path()}",
            sock=sock,
            compression=None,
            additional_headers=headers,
            max_size=_LARGEST_MESSAGE,
            close_timeout=1,
        ) as opened:
            self._socket = opened
            if self._stopping.is_set():
                hang_up(opened)
            self.is_open.set()
            self._trouble = ""
            try:
                yield opened
            finally:
                self.is_open.clear()
                self._socket = None

    def _say(self, trouble: str, fault: Exception | None = None) -> None:
        """Once for each kind: a link that is away for a day is not logged every half minute."""
        if trouble != self._trouble and not self._stopping.is_set():
            self._trouble = trouble
            level = logging.INFO if fault is None else logging.ERROR
            _LOG.log(level, "%s: %s", self._address.path or self._address.base, trouble, exc_info=fault)


def hang_up(opened: ClientConnection) -> None:
    """Without a closing handshake: readers and writers stop at once."""
    with contextlib.suppress(OSError):
        opened.socket.shutdown(socket.SHUT_RDWR)
