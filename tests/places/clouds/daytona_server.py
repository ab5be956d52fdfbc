"""What the SDK of Daytona talks to, on loopback: the API, and the toolbox of each sandbox.

Like the service, a sandbox ends when it was not used for its interval; a terminal outlives its connection, drops a
connection that is too slow, and output that is not sent when its program ends.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import pty
import queue
import shutil
import subprocess
import termios
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage

from tests.places.clouds.http_service import HostedSandbox, HttpHandler, HttpService, form, new_name

KEY = "dtn_0123456789abcdef0123456789abcdef"
_ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_EXIT_NOTICE = "X-Daytona-Pty-Exit-Control"
_LARGEST_MESSAGE = 64 << 10
_LONGEST_QUEUE = 256


class DaytonaSandbox(HostedSandbox):
    def __init__(self, server: DaytonaServer, given: dict[str, Any]) -> None:
        super().__init__(server.directory, given["labels"], "DAYTONA_SANDBOX_ID", new_name("sandbox-"))
        self.given = given
        self.limit = given["autoStopInterval"] * server.minute
        self.end_at = time.time() + self.limit
        self.state = "started"

    def start(self, words: list[str], **more: Any) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(words, env=self.environ, cwd=self.home, start_new_session=True, **more)
        self.processes.append(child)
        return child

    def described(self, address: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.id,
            "organizationId": "o",
            "user": "user",
            "env": {},
            "labels": self.labels,
            "public": False,
            "networkBlockAll": False,
            "kvm": False,
            "target": "us",
            "state": self.state,
            "cpu": 1,
            "gpu": 0,
            "memory": 1,
            "disk": 3,
            "toolboxProxyUrl": f"{address}/toolbox",
        }


class _Socket:
    """The server's end of a websocket."""

    def __init__(self, handler: HttpHandler) -> None:
        self._service: DaytonaServer = handler.service
        self._socket = handler.connection
        self._frames = Connection(ConnectionType.SERVER)
        self._lock = threading.Lock()
        self.waiting: queue.Queue[bytes] = queue.Queue(_LONGEST_QUEUE)
        key = hashlib.sha1(handler.headers["Sec-WebSocket-Key"].encode() + _ACCEPT).digest()
        handler.send_response(101)
        handler.send_header("Upgrade", "websocket")
        handler.send_header("Connection", "Upgrade")
        handler.send_header("Sec-WebSocket-Accept", base64.b64encode(key).decode())
        self.wants_notice = _EXIT_NOTICE in (handler.headers["Sec-WebSocket-Protocol"] or "")
        if self.wants_notice:
            handler.send_header("Sec-WebSocket-Protocol", _EXIT_NOTICE)
        handler.end_headers()
        handler.wfile.flush()

    def send(self, event: Event) -> None:
        with self._lock, contextlib.suppress(Exception):  # the client has gone
            self._socket.sendall(self._frames.send(event))

    def control(self, **message: Any) -> None:
        self.send(TextMessage(data=json.dumps({"type": "control", **message})))

    def greet(self) -> None:
        if self._service.delays:
            first, *self._service.delays = self._service.delays
            time.sleep(first)
        self.control(status="connected")

    def write_waiting(self) -> None:
        while data := self.waiting.get():
            time.sleep(self._service.pause)
            self.send(BytesMessage(data=data))

    def close(self, code: int, reason: str) -> None:
        self.send(CloseConnection(code=code, reason=reason))
        with contextlib.suppress(OSError):
            self._socket.shutdown(2)

    def read(self, target: int) -> None:
        """Until the client is gone."""
        size = 0
        while data := self._socket.recv(1 << 16):
            self._frames.receive_data(data)
            for event in self._frames.events():
                if isinstance(event, Ping):
                    self.send(event.response())
                elif isinstance(event, CloseConnection):
                    return self.close(1000, "")
                elif isinstance(event, BytesMessage):
                    size += len(event.data)
                    if size > _LARGEST_MESSAGE:
                        return self.close(1009, "too big")
                    _write_all(target, bytes(event.data))
                    size = 0 if event.message_finished else size
        return None


def _write_all(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


class _Terminal:
    def __init__(self, sandbox: DaytonaSandbox, client: _Socket) -> None:
        self._master, slave = pty.openpty()
        self._client = client
        shell = shutil.which("bash") or "/bin/sh"
        self._shell = sandbox.start(
            [shell, "-i", "-l"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        for work in (self._read, self._wait, client.write_waiting):
            threading.Thread(target=work, daemon=True).start()
        client.greet()
        with contextlib.suppress(OSError):
            client.read(self._master)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._master, 32 << 10):
                try:
                    self._client.waiting.put_nowait(data)
                except queue.Full:
                    self._client.close(1008, "slow consumer")

    def _wait(self) -> None:
        code = self._shell.wait()
        if self._client.wants_notice:
            self._client.control(status="exited", exitCode=code)
        self._client.close(1000 if code == 0 else 1011, json.dumps({"exitCode": code}))


class _Handler(HttpHandler):
    service: DaytonaServer

    def respond(self, body: bytes) -> None:
        address = urlsplit(self.path)
        if self.headers["Authorization"] != f"Bearer {KEY}":
            return self.answer(401, {"statusCode": 401, "message": "Invalid credentials", "error": "Unauthorized"})
        area, _, path = address.path.lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if area == "api" and path.split("/")[0] == "sandbox":
            return self._api(path.removeprefix("sandbox").lstrip("/"), query, body)
        name, _, path = path.partition("/")
        sandbox = self.service.sandboxes.get(name)
        if area != "toolbox" or sandbox is None:
            return self._missing(name)
        return self._toolbox(sandbox, path, query, body)

    def _missing(self, name: str) -> None:
        self.answer(404, {"statusCode": 404, "message": f"Sandbox with ID {name} not found", "error": "Not Found"})

    def _api(self, path: str, query: dict[str, str], body: bytes) -> None:
        service = self.service
        if not path and self.command == "POST":
            made = DaytonaSandbox(service, json.loads(body))
            service.sandboxes[made.id] = made
            return self.answer(200, made.described(service.address))
        if not path:
            wanted = json.loads(unquote(query.get("labels", "{}"))).items()
            found = [
                one.described(service.address)
                for one in service.sandboxes.values()
                if wanted <= one.labels.items() and one.id.startswith(query.get("id", ""))
            ]
            return self.answer(200, {"items": found, "nextCursor": None})
        name, _, what = path.partition("/")
        sandbox = service.sandboxes.get(name)
        if sandbox is None:
            return self._missing(name)
        if self.command == "DELETE":
            service.end(name)
        elif what == "last-activity":
            sandbox.end_at = time.time() + sandbox.limit
            return self.answer(204)
        return self.answer(200, sandbox.described(service.address))

    def _toolbox(self, sandbox: DaytonaSandbox, path: str, query: dict[str, str], body: bytes) -> None:
        sandbox.end_at = time.time() + sandbox.limit
        if path == "process/execute":
            words = ["bash", "-c", json.loads(body)["command"]]
            child = sandbox.start(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            output = child.communicate()[0].decode()
            return self.answer(200, {"exitCode": child.returncode, "result": output})
        if path == "files/bulk-upload":
            parts = form(self.headers["Content-Type"], body)
            Path(parts["files[0].path"].decode()).write_bytes(parts["files[0].file"])
            return self.answer(200, {})
        assert path == "process/pty/create-connect", path
        self.close_connection = True
        _Terminal(sandbox, _Socket(self))
        return None


class DaytonaServer(HttpService):
    key = KEY
    handler = _Handler
    #: Seconds of a minute; between two messages of a terminal; and before the first one, in turn.
    minute = 60.0
    pause = 0.0
    delays: Sequence[float] = ()

    def reset(self) -> None:
        super().reset()
        self.minute, self.pause, self.delays = 60.0, 0.0, ()

    @property
    def options(self) -> dict[str, Any]:
        return {**super().options, "api_url": f"{self.address}/api"}
