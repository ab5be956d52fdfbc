"""A page of the dashboard as the daemon sees it: raw HTTP with a cookie and a secret, and WebSockets."""

from __future__ import annotations

import http.client
import json
import os
import signal
from typing import Any

from websockets.sync.client import ClientConnection, connect

import holdfast
from tests.http.asking import Reply
from tests.support import eventually, run_cli


def new_link(*options: str) -> str:
    """The link that the command prints."""
    printed = run_cli("dashboard", "--print", *options)
    assert printed.returncode == 0, printed
    return printed.stdout.decode().strip()


class Page:
    """A tab of a browser that opened a link; `cookie` and `secret` are None until it has logged in."""

    def __init__(self, link: str) -> None:
        self.url, _, self.key = link.partition("/#key=")
        self.host = self.url.removeprefix("http://")
        self.cookie: str | None = None
        self.secret: str | None = None

    def log_in(self, **changes: Any) -> Reply:
        reply = self.ask("POST", "/api/v1/dashboard/login", {"key": self.key}, **changes)
        if reply.status == 200:
            self.secret = reply.value["secret"]
            self.cookie = reply.headers["set-cookie"].partition(";")[0]
        return reply

    def ask(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Reply:
        """As the page's own script would ask."""
        return send(self.host, method, path, body, {"Origin": self.url, **self.proof(), **(headers or {})})

    def proof(self) -> dict[str, str]:
        cookie = {"Cookie": self.cookie} if self.cookie else {}
        return {**cookie, "Holdfast-Secret": self.secret} if self.secret else cookie

    def socket(self, path: str, **options: Any) -> ClientConnection:
        offered = ["holdfast.v1", f"holdfast.secret.{self.secret}"]
        headers = {"Cookie": self.cookie} if self.cookie else {}
        options = {"subprotocols": offered, "origin": self.url, "additional_headers": headers, **options}
        opened: ClientConnection = connect(f"ws://{self.host}{path}", **options)
        return opened


def send(host: str, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Reply:
    sent = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        sent.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    finally:
        connection.close()


def open_page(*options: str) -> Page:
    page = Page(new_link(*options))
    assert page.log_in().status == 200
    return page


def kill_daemon() -> None:
    """Kill it, and wait for the next one."""
    with holdfast.connect() as client:
        pid = client.status()["pid"]
        os.kill(pid, signal.SIGKILL)

    def is_another() -> bool:
        with holdfast.connect() as client:
            return bool(client.status()["pid"] != pid)

    eventually(is_another)
