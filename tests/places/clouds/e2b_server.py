"""What the SDK of E2B talks to, on loopback: the REST API, and the envd of each sandbox.

A sandbox is a directory of this machine, and its processes are real ones. Like the service, a sandbox ends after its
timeout, and its processes outlive the connection that started them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

KEY = "e2b_0123456789abcdef0123456789abcdef01234567"
_ENVD = "0.6.7"


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


class FakeSandbox:
    def __init__(self, root: Path, metadata: dict[str, str], timeout: float) -> None:
        self.id = f"i{secrets.token_hex(9)}"
        self.metadata = metadata
        self.home = root / self.id
        self.home.mkdir()
        self.started_at = time.time()
        self.end_at = time.time() + timeout
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def mark(self) -> str:
        return f"E2B_SANDBOX_ID={self.id}"

    def start(self, process: dict[str, Any], has_input: bool) -> subprocess.Popen[bytes]:
        environ = {"HOME": str(self.home), "USER": "user", "PATH": os.environ["PATH"], "E2B_SANDBOX_ID": self.id}
        child = subprocess.Popen(
            [process["cmd"], *process.get("args", [])],
            env={**environ, **process.get("envs", {})},
            cwd=process.get("cwd") or self.home,
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.processes[child.pid] = child
        return child

    def pids(self) -> set[int]:
        return tree(self.mark)

    def end(self) -> None:
        while pids := self.pids():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for child in self.processes.values():
                child.poll()
        for child in self.processes.values():
            child.wait()
        shutil.rmtree(self.home, ignore_errors=True)


class E2bServer:
    """`trouble` is a status that every request gets instead of an answer; 0 cuts its connection."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="hf-e2b-"))
        self.sandboxes: dict[str, FakeSandbox] = {}
        self.requests: list[str] = []
        self.trouble: int | None = None
        self.lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        server = self

        class Handler(_Handler):
            service = server

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        threading.Thread(target=self._end_late_ones, daemon=True).start()
        address = f"http://127.0.0.1:{self._http.server_port}"
        self.key_file = self.directory / "key"
        self.key_file.touch(0o600)
        self.key_file.write_text(f"{KEY}\n")
        #: Of the bridge.
        self.environ = {"E2B_API_URL": address, "E2B_SANDBOX_URL": address, "E2B_HTTP_VERSION": "1.1"}

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

    def close(self) -> None:
        for name in list(self.sandboxes):
            self.end(name)
        self._http.shutdown()
        self._http.server_close()
        shutil.rmtree(self.directory, ignore_errors=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: E2bServer

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
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    # Requests and answers.

    def _serve(self) -> None:
        body = self._body()
        self.service.requests.append(f"{self.command} {self.path}")
        trouble = self.service.trouble
        if trouble == 0:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        if trouble is not None:
            return self._answer(trouble, {"message": "bad gateway", "code": trouble})
        address = urlsplit(self.path)
        is_api = address.path.startswith(("/sandboxes", "/v2/sandboxes"))
        if is_api:
            if self.headers["X-API-Key"] != KEY:
                return self._answer(401, {"message": "invalid API key", "code": 401})
            return self._api(address.path.removeprefix("/v2"), parse_qs(address.query), body)
        sandbox = self.service.sandboxes.get(self.headers["E2b-Sandbox-Id"] or "")
        if sandbox is None:
            name = self.headers["E2b-Sandbox-Id"]
            return self._answer(502, {"message": f"The sandbox {name} was not found", "code": 502})
        return self._envd(sandbox, address.path, dict(parse_qsl(address.query)), body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, value: Any = None) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    # The REST API.

    def _api(self, path: str, query: dict[str, list[str]], body: bytes) -> None:
        given = json.loads(body) if body else {}
        service = self.service
        if path == "/sandboxes" and self.command == "POST":
            made = FakeSandbox(service.directory, given["metadata"], given["timeout"])
            service.sandboxes[made.id] = made
            return self._answer(201, _described(made))
        if path == "/sandboxes":
            wanted = parse_qsl(unquote(query["metadata"][0])) if "metadata" in query else []
            found = [
                {**_described(one), **_listed(one)}
                for one in service.sandboxes.values()
                if all(one.metadata.get(name) == value for name, value in wanted)
            ]
            return self._answer(200, found)
        name, _, what = path.removeprefix("/sandboxes/").partition("/")
        if self.command == "DELETE":
            return self._answer(204) if service.end(name) else self._answer(404, {"message": "not found", "code": 404})
        sandbox = service.sandboxes.get(name)
        if sandbox is None:
            return self._answer(404, {"message": f"sandbox {name} not found", "code": 404})
        if what == "timeout":
            sandbox.end_at = time.time() + given["timeout"]
            return self._answer(204)
        assert what == "connect"
        sandbox.end_at = max(sandbox.end_at, time.time() + given["timeout"])
        return self._answer(200, _described(sandbox))

    # envd.

    def _envd(self, sandbox: FakeSandbox, path: str, query: dict[str, str], body: bytes) -> None:
        if path == "/health":
            return self._answer(204)
        if path == "/files":
            target = Path(query["path"])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_uploaded(self.headers["Content-Type"], body))
            return self._answer(200, [{"name": target.name, "type": "file", "path": str(target)}])
        method = path.removeprefix("/process.Process/")
        if method == "Start":
            return self._start(sandbox, json.loads(body[5:]))
        given = json.loads(body)
        child = sandbox.processes.get(given["process"]["pid"])
        if child is None or child.poll() is not None or child.stdin is None or child.stdin.closed:
            return self._answer(404, {"code": "not_found", "message": "process not found"})
        try:
            if method == "SendInput":
                child.stdin.write(base64.b64decode(given["input"]["stdin"]))
                child.stdin.flush()
            else:
                assert method == "CloseStdin"
                child.stdin.close()
        except BrokenPipeError:
            return self._answer(500, {"code": "internal", "message": "broken pipe"})
        return self._answer(200, {})

    def _start(self, sandbox: FakeSandbox, given: dict[str, Any]) -> None:
        child = sandbox.start(given["process"], given.get("stdin", False))
        self.send_response(200)
        self.send_header("Content-Type", "application/connect+json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        writing = threading.Lock()

        def send(event: dict[str, Any] | None) -> None:
            data = json.dumps({} if event is None else {"event": event}).encode()
            frame = struct.pack("!BI", 2 if event is None else 0, len(data)) + data
            with writing, contextlib.suppress(OSError, ValueError):  # the client has gone: the process goes on
                self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))

        def pump(name: str, stream: Any) -> None:
            while data := os.read(stream.fileno(), 32768):
                send({"data": {name: base64.b64encode(data).decode()}})

        send({"start": {"pid": child.pid}})
        streams = {"stdout": child.stdout, "stderr": child.stderr}
        threads = [threading.Thread(target=pump, args=one, daemon=True) for one in streams.items()]
        for thread in threads:
            thread.start()
        code = child.wait()
        for thread in threads:
            thread.join()
        ended = {"exitCode": code if code >= 0 else -1, "exited": code >= 0, "status": f"exit status {code}"}
        send({"end": ended})
        send(None)
        with contextlib.suppress(OSError):
            self.wfile.write(b"0\r\n\r\n")


def _described(sandbox: FakeSandbox) -> dict[str, Any]:
    return {"templateID": "base", "sandboxID": sandbox.id, "clientID": "0", "envdVersion": _ENVD}


def _listed(sandbox: FakeSandbox) -> dict[str, Any]:
    times = {"startedAt": sandbox.started_at, "endAt": sandbox.end_at}
    return {
        "metadata": sandbox.metadata,
        **{name: datetime.fromtimestamp(value, UTC).isoformat() for name, value in times.items()},
        "cpuCount": 1,
        "memoryMB": 512,
        "diskSizeMB": 512,
        "state": "running",
    }


def _uploaded(kind: str, body: bytes) -> bytes:
    """The content of a file, from a form or as it is."""
    found = re.search('boundary="?([^";]+)', kind)
    if found is None:
        return body
    part = body.split(b"--" + found[1].encode())[1]
    return part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
