"""Asking a daemon over HTTP as any program would: no client of ours in between."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from holdfast import Client


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> Any:
        """Of a problem; what every problem must have is checked by the way."""
        assert self.headers["content-type"] == "application/problem+json"
        problem = self.value
        assert problem["status"] == self.status
        assert {"title", "detail", "next", "code"} <= problem.keys()
        return problem["code"]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        directory = os.open(os.path.dirname(self._path), os.O_PATH)
        self.sock.connect(f"/proc/self/fd/{directory}/{os.path.basename(self._path)}")
        os.close(directory)


class Api:
    """One instance: on its socket, or on TCP with its token."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.token: str | None = None
        self.address: tuple[str, int] | None = None

    def open_tcp(self) -> None:
        host, port = self.client.http("open")["url"].removeprefix("http://").split(":")
        self.address = host, int(port)
        self.token = Path(self.client.paths.token).read_text().strip()

    @property
    def url(self) -> str:
        assert self.address is not None
        return f"http://{self.address[0]}:{self.address[1]}"

    def connect(self) -> http.client.HTTPConnection:
        if self.address is None:
            return UnixConnection(self.client.paths.socket)
        return http.client.HTTPConnection(*self.address, timeout=30)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
        token: str | None = None,
    ) -> Reply:
        sent = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        with self._exchange(method, path, body, self._proven(sent, token)) as response:
            found = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, found, response.read())

    def asking(self, path: str, headers: dict[str, str]) -> AbstractContextManager[http.client.HTTPResponse]:
        """What a GET brings, while it is still coming."""
        return self._exchange("GET", path, None, self._proven(headers))

    def _proven(self, headers: dict[str, str], token: str | None = None) -> dict[str, str]:
        token = self.token if token is None else token
        return {"Authorization": f"Bearer {token}", **headers} if token else headers

    @contextmanager
    def _exchange(
        self, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self.connect()
        try:
            with suppress(BrokenPipeError):  # a body that is refused is not read to its end; the response is there
                connection.request(method, path, body, headers)
            yield connection.getresponse()
        finally:
            connection.close()

    def start(self, command: str, **options: Any) -> Any:
        reply = self.ask("POST", "/api/v1/processes", {"command": command, **options})
        assert reply.status == 201, reply
        return reply.value


def events(response: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    """Id, kind and data of server-sent events."""
    fields: dict[str, str] = {}
    while line := response.readline():
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(":")
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            yield fields.get("id", ""), fields["event"], json.loads(fields["data"])
            fields = {}
