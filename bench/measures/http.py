"""Reading a process over HTTP, beside a bare uvicorn route that says the same: one connection, one request after the
other, on loopback TCP.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figure import Figure, ratio
from bench.instance import Instance
from bench.run import Run
from bench.series import Sample, interleave

#: Requests of one sample: a single one is too short to be measured beside the other.
_REQUESTS = 20

_BARE = """
import socket, sys, uvicorn
body = sys.stdin.buffer.read()
headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
sock.bind(("127.0.0.1", 0))
print(sock.getsockname()[1], flush=True)
config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, timeout_keep_alive=600)
uvicorn.Server(config).run(sockets=[sock])
"""


def measure(run: Run) -> list[Figure]:
    with Instance(run.directory) as instance:
        process = instance.client.run(["sleep", "3600"])
        port = int(instance.client.http("open")["url"].rpartition(":")[2])
        token = Path(instance.client.paths.token).read_text().strip()
        with bare(json.dumps(process.to_json()).encode()) as bare_port:
            samples: dict[str, Sample] = {
                "holdfast": reader(port, f"/api/v1/processes/{process.id}", {"Authorization": f"Bearer {token}"}),
                "bare uvicorn": reader(bare_port, "/", {}),
            }
            for sample in samples.values():
                sample()
            taken = interleave(run.scale.rounds, samples)
    return [
        ratio("HTTP read of a process, to a bare uvicorn route", taken["holdfast"], taken["bare uvicorn"], 3.0, 2.0)
    ]


def reader(port: int, path: str, headers: dict[str, str]) -> Sample:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def sample() -> float:
        begun = time.monotonic()
        for _ in range(_REQUESTS):
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            response.read()
            assert response.status == 200
        return (time.monotonic() - begun) / _REQUESTS

    return sample


@contextmanager
def bare(body: bytes) -> Iterator[int]:
    server = subprocess.Popen(
        [sys.executable, "-c", _BARE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(body)
    server.stdin.close()
    try:
        yield int(server.stdout.readline())
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
