"""Flow control of a terminal on a WebSocket: a page that shows output slowly is sent no more than it can show."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosedOK
from websockets.sync.client import ClientConnection

from tests.dashboard.page import Page, open_page

INPUT, OUTPUT, CONTROL = 0, 1, 3
WINDOW = 256 << 10
#: Several windows, and more than any buffer of a connection holds.
SIZE = 12 << 20


@pytest.fixture(scope="module")
def page(instance: Path) -> Page:
    return open_page()


class Terminal:
    """What a page does with its WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.output = bytearray()
        self.controls: list[dict[str, object]] = []

    def receive(self, timeout: float = 60.0) -> bool:
        """Whether a message came in time."""
        try:
            message = self.socket.recv(timeout=timeout)
        except TimeoutError:
            return False
        assert isinstance(message, bytes)
        if message[0] == CONTROL:
            self.controls.append(json.loads(message[1:]))
        else:
            self.output += message[1:]
        return True

    def fill(self, most: int) -> None:
        """Until nearly as much has come; then nothing more does."""
        while len(self.output) < most - (64 << 10):
            assert self.receive(timeout=60.0)
        while self.receive(timeout=1.0):
            pass
        assert len(self.output) <= most

    def ack(self, size: object) -> None:
        with contextlib.suppress(ConnectionClosedOK):  # the process may end meanwhile
            self.socket.send(bytes((CONTROL,)) + json.dumps({"type": "ack", "bytes": size}).encode())

    @property
    def last(self) -> object:
        return self.controls[-1]["type"] if self.controls else None


def start(page: Page, command: str, **options: object) -> str:
    started = page.ask("POST", "/api/v1/processes", {"command": command, **options})
    assert started.status == 201, started
    return str(started.value["id"])


def lines(size: int) -> str:
    return f"seq 1 10000000 | head -c {size}"


def expected(size: int) -> str:
    text, number = bytearray(), 0
    while len(text) < size:
        number += 1
        text += b"%d\n" % number
    return hashlib.sha256(bytes(text[:size])).hexdigest()


def test_a_page_that_acknowledges_nothing_more_is_sent_a_window_and_loses_nothing(page: Page) -> None:
    process = start(page, f"read go; {lines(SIZE)}", stdin=True)
    with page.socket(f"/api/v1/processes/{process}/attach?from=0") as socket:
        terminal = Terminal(socket)
        terminal.ack(0)
        socket.send(b"\0go\n")
        terminal.fill(WINDOW)
        # The process has long ended: what it wrote waits in the log.
        assert page.ask("GET", f"/api/v1/processes/{process}/wait?timeout=30").value["process"]["status"] == "ended"
        held = len(terminal.output)
        terminal.ack(held)
        terminal.fill(held + WINDOW)
        while terminal.last != "exit":
            terminal.ack(len(terminal.output))
            assert terminal.receive()
        assert [one["type"] for one in terminal.controls] == ["hello", "exit"]
        assert len(terminal.output) == SIZE
        assert hashlib.sha256(terminal.output).hexdigest() == expected(SIZE)


def test_a_client_that_never_acknowledges_gets_everything(page: Page) -> None:
    process = start(page, lines(SIZE))
    with page.socket(f"/api/v1/processes/{process}/attach?from=0") as socket:
        terminal = Terminal(socket)
        while terminal.last != "exit":
            assert terminal.receive()
        assert hashlib.sha256(terminal.output).hexdigest() == expected(SIZE)


def test_acknowledgements_count_while_input_waits(page: Page) -> None:
    """A process that reads nothing keeps no output from the page."""
    process = start(page, f"sleep 0.2; {lines(SIZE)}; sleep 60", stdin=True)
    with page.socket(f"/api/v1/processes/{process}/attach?from=0") as socket:
        terminal = Terminal(socket)
        terminal.ack(0)
        for _ in range(8):
            socket.send(b"\0" + b"x" * 100_000)  # more than a pipe holds
        while len(terminal.output) < SIZE:
            terminal.ack(len(terminal.output))
            assert terminal.receive()
    page.ask("POST", f"/api/v1/processes/{process}/kill", {"grace": 0})


@pytest.mark.parametrize("wrong", [-1, 1 << 60, 1.5, "7", None, True, [], {}])
def test_an_acknowledgement_that_cannot_be_meant_is_an_error(page: Page, wrong: object) -> None:
    process = start(page, "echo hello; sleep 60")
    with page.socket(f"/api/v1/processes/{process}/attach?from=0") as socket:
        terminal = Terminal(socket)
        while b"hello\n" not in terminal.output:
            assert terminal.receive()
        terminal.ack(wrong)
        assert terminal.receive()
        assert (terminal.last, terminal.controls[-1]["code"]) == ("error", "bad_value")
        terminal.ack(len(terminal.output))
        socket.send(b'\3{"type": "signal", "signal": "KILL"}')
        while terminal.last != "exit":
            assert terminal.receive()
