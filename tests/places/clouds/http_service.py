"""What servers of the tests have in common that answer as a cloud provider does.

A sandbox is a directory of this machine, and its processes are real ones.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar


def tree(mark: str) -> set[int]:
    """The processes that have the mark in their first environment, and all descendants."""
    parents: dict[int, int] = {}
    found: set[int] = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            parents[int(name)] = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
            if mark.encode() in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                found.add(int(name))
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


class HostedSandbox:
    """`labels` are those of the request, and `variable` is in the environment of its processes."""

    def __init__(self, root: Path, labels: dict[str, str], variable: str, name: str) -> None:
        self.id = name
        self.labels = labels
        self.mark = f"{variable}={name}"
        self.home = root / name
        self.home.mkdir()
        self.started_at = time.time()
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def environ(self) -> dict[str, str]:
        name, _, value = self.mark.partition("=")
        return {"HOME": str(self.home), "USER": "user", "PATH": os.environ["PATH"], name: value}

    def pids(self) -> set[int]:
        return tree(self.mark)

    def end(self) -> None:
        while pids := self.pids():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for child in self.processes:
                child.poll()
        for child in self.processes:
            child.wait()
        shutil.rmtree(self.home, ignore_errors=True)


class HttpService:
    """`trouble` is a status that every request gets instead of an answer; 0 cuts its connection."""

    key: ClassVar[str]
    handler: ClassVar[type[HttpHandler]]

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="hf-cloud-"))
        self.sandboxes: dict[str, Any] = {}
        self.requests: list[str] = []
        self.trouble: int | None = None
        self.lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        handler = type("Handler", (self.handler,), {"service": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        threading.Thread(target=self._end_late_ones, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._http.server_port}"
        self.key_file = self.directory / "key"
        self.key_file.touch(0o600)
        self.key_file.write_text(f"{self.key}\n")
        #: Of the bridge.
        self.environ: dict[str, str] = {}

    @property
    def options(self) -> dict[str, Any]:
        return {"api_key_file": str(self.key_file)}

    def _end_late_ones(self) -> None:
        while True:
            time.sleep(0.05)
            for sandbox in list(self.sandboxes.values()):
                if time.time() > sandbox.end_at:
                    self.end(sandbox.id)

    def end(self, name: str) -> bool:
        with self.lock:
            sandbox = self.sandboxes.pop(name, None)
        if sandbox is not None:
            sandbox.end()
        return sandbox is not None

    def opened(self, connection: socket.socket) -> None:
        with self.lock:
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self.lock:
            self._connections.discard(connection)

    def cut(self, trouble: int | None = None) -> None:
        """Drop all connections; from then on there is this trouble."""
        self.trouble = trouble
        with self.lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """As it was at first."""
        self.trouble = None
        for name in list(self.sandboxes):
            self.end(name)
        self.requests.clear()

    def close(self) -> None:
        self.reset()
        self._http.shutdown()
        self._http.server_close()
        shutil.rmtree(self.directory, ignore_errors=True)


class HttpHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: Any

    def log_message(self, *arguments: Any) -> None:
        return

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.service.opened(self.connection)

    def finish(self) -> None:
        self.service.closed(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError, BrokenPipeError):
            super().handle()

    def do_GET(self) -> None:
        body = self._body()
        self.service.requests.append(f"{self.command} {self.path}")
        trouble = self.service.trouble
        if trouble == 0:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif trouble is not None:
            self.answer(trouble, {"message": "bad gateway", "code": trouble})
        else:
            self.respond(body)

    do_POST = do_DELETE = do_PUT = do_GET

    def respond(self, body: bytes) -> None:
        """Answer the request in `command` and `path`."""
        raise NotImplementedError

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, value: Any = None) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def new_name(prefix: str) -> str:
    return f"{prefix}{secrets.token_hex(9)}"


def form(kind: str, body: bytes) -> dict[str, bytes]:
    """The parts of a form by name; of a body that is none, one without a name."""
    found = re.search('boundary="?([^";]+)', kind)
    if found is None:
        return {"": body}
    parts = {}
    for part in body.split(b"--" + found[1].encode())[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]*)"', head)
        parts[name[1].decode() if name else ""] = content.removesuffix(b"\r\n")
    return parts
