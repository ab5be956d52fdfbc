"""The keeper's side of a control stream: it parses requests and sends answers, and never waits."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from typing import Any

from holdfast_keeper import protocol
from holdfast_keeper.loop import READ, WRITE, Loop

#: A peer that leaves more than this unread is disconnected.
_MOST_UNREAD = 64 << 20


class Connection:
    """One peer. `on_request` is called with each message, `on_close` once."""

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        on_request: Callable[[Connection, protocol.Message], None],
        on_close: Callable[[Connection], None],
    ) -> None:
        self._loop = loop
        self._sock = sock
        self._on_request = on_request
        self._on_close = on_close
        self._decoder = protocol.Decoder()
        self._unsent = bytearray()
        self.is_open = True
        #: Whether it sent `hello`: then it receives facts.
        self.is_daemon = False
        #: Whether it sent `leave`: the daemon stops on purpose.
        self.has_left = False
        sock.setblocking(False)
        loop.watch(sock.fileno(), READ, self._ready)

    def answer(self, rid: Any, ok: protocol.Message) -> None:
        self.send({"rid": rid, "ok": ok})

    def refuse(self, rid: Any, code: str, message: str) -> None:
        self.send({"rid": rid, "error": {"code": code, "message": message}})

    def send(self, message: protocol.Message) -> None:
        if not self.is_open:
            return
        self._unsent += protocol.encode(message)
        self._flush()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.unwatch(self._sock.fileno())
            self._sock.close()
            self._on_close(self)

    def _flush(self) -> None:
        try:
            sent = self._sock.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return
        del self._unsent[:sent]
        if len(self._unsent) > _MOST_UNREAD:
            self.close()
        else:
            self._loop.watch(self._sock.fileno(), READ | WRITE if self._unsent else READ, self._ready)

    def _ready(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if self.is_open and events & ~WRITE:
            self._read()

    def _read(self) -> None:
        try:
            data = self._sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        try:
            messages = self._decoder.feed(data)
        except (protocol.ProtocolError, RecursionError):
            data, messages = b"", []
        for message in messages:
            self._on_request(self, message)
        if not data:
            self.close()


#: The connection and the `rid` of a request that is answered later.
ReplyTo = tuple[Connection, Any]


def is_owner(sock: socket.socket) -> bool:
    """Whether the peer runs as our own user, or as root."""
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid in (os.geteuid(), 0)
