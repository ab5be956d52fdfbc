"""A real HTTP server of the test's own: it keeps what it gets, checks signatures, and answers as it is told to."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Got(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def is_signed_with(self, key: bytes) -> bool:
        """As a receiver would check it, by the description and not by our code."""
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return self.headers["webhook-signature"] == f"v1,{wanted}"


class Plan(NamedTuple):
    """How one request is answered."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes = b""
    hang: bool = False
    delay: float = 0.0
    once: Callable[[], bool] = lambda: True
    """It is answered when this is true, and then the delay is over."""
    drip: bool = False
    """Says something every now and then, and never comes to an end."""


class Receiver:
    def __init__(self) -> None:
        self.got: list[Got] = []
        #: For the next requests, one each; after that all is well.
        self.plans: list[Plan] = []
        #: For every request that no plan is left for.
        self.usual = Plan()
        #: Paths that get no answer.
        self.hangs: set[str] = set()
        self.over = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def keep(self, got: Got) -> Plan:
        with self._lock:
            self.got.append(got)
            return self.plans.pop(0) if self.plans else self.usual

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    try:
        yield receiver
    finally:
        receiver.close()


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            plan = receiver.keep(Got(self.path, dict(self.headers.items()), body))
            if plan.hang or self.path in receiver.hangs:
                receiver.over.wait(60)
                return
            if plan.drip:
                self._drip()
                return
            while not plan.once() and not receiver.over.wait(0.01):
                pass
            receiver.over.wait(plan.delay)
            self.send_response(plan.status)
            for name, value in {"Content-Length": str(len(plan.body)), **plan.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(plan.body)

        def _drip(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            try:
                while not receiver.over.wait(0.2):
                    self.wfile.write(b"X-More: yes\r\n")
            except OSError:
                return

        def log_message(self, *_: object) -> None:
            return

    return Handler
