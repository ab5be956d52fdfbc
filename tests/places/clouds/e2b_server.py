"""What the SDK of E2B talks to, on loopback: the REST API, and the envd of each sandbox.

Like the service, a sandbox ends after its timeout, and its processes outlive the connection that started them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import struct
import subprocess
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from tests.places.clouds.http_service import HostedSandbox, HttpHandler, HttpService, form, new_name

KEY = "e2b_0123456789abcdef0123456789abcdef01234567"
_ENVD = "0.6.7"


class FakeSandbox(HostedSandbox):
    def __init__(self, root: Path, metadata: dict[str, str], timeout: float) -> None:
        super().__init__(root, metadata, "E2B_SANDBOX_ID", new_name("i"))
        self.end_at = time.time() + timeout
        self.children: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, process: dict[str, Any], has_input: bool) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [process["cmd"], *process.get("args", [])],
            env={**self.environ, **process.get("envs", {})},
            cwd=process.get("cwd") or self.home,
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.processes.append(child)
        self.children[child.pid] = child
        return child


class _Handler(HttpHandler):
    service: E2bServer

    def respond(self, body: bytes) -> None:
        address = urlsplit(self.path)
        is_api = address.path.startswith(("/sandboxes", "/v2/sandboxes"))
        if is_api:
            if self.headers["X-API-Key"] != KEY:
                return self.answer(401, {"message": "invalid API key", "code": 401})
            return self._api(address.path.removeprefix("/v2"), parse_qs(address.query), body)
        sandbox = self.service.sandboxes.get(self.headers["E2b-Sandbox-Id"] or "")
        if sandbox is None:
            name = self.headers["E2b-Sandbox-Id"]
            return self.answer(502, {"message": f"The sandbox {name} was not found", "code": 502})
        return self._envd(sandbox, address.path, dict(parse_qsl(address.query)), body)

    # The REST API.

    def _api(self, path: str, query: dict[str, list[str]], body: bytes) -> None:
        given = json.loads(body) if body else {}
        service = self.service
        if path == "/sandboxes" and self.command == "POST":
            made = FakeSandbox(service.directory, given["metadata"], given["timeout"])
            service.sandboxes[made.id] = made
            return self.answer(201, _described(made))
        if path == "/sandboxes":
            wanted = parse_qsl(unquote(query["metadata"][0])) if "metadata" in query else []
            found = [
                {**_described(one), **_listed(one)}
                for one in service.sandboxes.values()
                if all(one.labels.get(name) == value for name, value in wanted)
            ]
            return self.answer(200, found)
        name, _, what = path.removeprefix("/sandboxes/").partition("/")
        if self.command == "DELETE":
            return self.answer(204) if service.end(name) else self.answer(404, {"message": "not found", "code": 404})
        sandbox = service.sandboxes.get(name)
        if sandbox is None:
            return self.answer(404, {"message": f"sandbox {name} not found", "code": 404})
        if what == "timeout":
            sandbox.end_at = time.time() + given["timeout"]
            return self.answer(204)
        assert what == "connect"
        sandbox.end_at = max(sandbox.end_at, time.time() + given["timeout"])
        return self.answer(200, _described(sandbox))

    # envd.

    def _envd(self, sandbox: FakeSandbox, path: str, query: dict[str, str], body: bytes) -> None:
        if path == "/health":
            return self.answer(204)
        if path == "/files":
            target = Path(query["path"])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(next(iter(form(self.headers["Content-Type"], body).values())))
            return self.answer(200, [{"name": target.name, "type": "file", "path": str(target)}])
        method = path.removeprefix("/process.Process/")
        if method == "Start":
            return self._start(sandbox, json.loads(body[5:]))
        given = json.loads(body)
        child = sandbox.children.get(given["process"]["pid"])
        if child is None or child.poll() is not None or child.stdin is None or child.stdin.closed:
            return self.answer(404, {"code": "not_found", "message": "process not found"})
        try:
            if method == "SendInput":
                child.stdin.write(base64.b64decode(given["input"]["stdin"]))
                child.stdin.flush()
            else:
                assert method == "CloseStdin"
                child.stdin.close()
        except BrokenPipeError:
            return self.answer(500, {"code": "internal", "message": "broken pipe"})
        return self.answer(200, {})

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
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):  # what it did not read
                    stream.close()
        ended = {"exitCode": code if code >= 0 else -1, "exited": code >= 0, "status": f"exit status {code}"}
        send({"end": ended})
        send(None)
        with contextlib.suppress(OSError):
            self.wfile.write(b"0\r\n\r\n")


class E2bServer(HttpService):
    key = KEY
    handler = _Handler

    def __init__(self) -> None:
        super().__init__()
        self.environ = {"E2B_API_URL": self.address, "E2B_SANDBOX_URL": self.address, "E2B_HTTP_VERSION": "1.1"}


def _described(sandbox: FakeSandbox) -> dict[str, Any]:
    return {"templateID": "base", "sandboxID": sandbox.id, "clientID": "0", "envdVersion": _ENVD}


def _listed(sandbox: FakeSandbox) -> dict[str, Any]:
    times = {"startedAt": sandbox.started_at, "endAt": sandbox.end_at}
    return {
        "metadata": sandbox.labels,
        **{name: datetime.fromtimestamp(value, UTC).isoformat() for name, value in times.items()},
        "cpuCount": 1,
        "memoryMB": 512,
        "diskSizeMB": 512,
        "state": "running",
    }
