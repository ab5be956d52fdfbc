"""A terminal on a WebSocket."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect, unix_connect

from tests.http.asking import Api
from tests.support import eventually, run_cli

INPUT, OUTPUT, ERRORS, CONTROL = 0, 1, 2, 3


def attach(api: Api, process: str, query: str = "", **options: Any) -> ClientConnection:
    path = f"/api/v1/processes/{process}/attach{query}"
    if api.address is None:
        here: ClientConnection = unix_connect(api.client.paths.socket, f"ws://localhost{path}", **options)
        return here
    headers = {"Authorization": f"Bearer {api.token}"}
    options.setdefault("additional_headers", headers)
    there: ClientConnection = connect(f"ws://{api.address[0]}:{api.address[1]}{path}", **options)
    return there


def receive(ws: ClientConnection) -> tuple[int, bytes]:
    message = ws.recv(timeout=60)
    assert isinstance(message, bytes)
    return message[0], message[1:]


def control(ws: ClientConnection) -> Any:
    """The next control message."""
    while True:
        channel, data = receive(ws)
        if channel == CONTROL:
            return json.loads(data)


def until(ws: ClientConnection, text: bytes) -> bytes:
    """Output up to this text."""
    found = b""
    while text not in found:
        channel, data = receive(ws)
        if channel == OUTPUT:
            found += data
    return found


def send(ws: ClientConnection, channel: int, data: bytes | dict[str, Any]) -> None:
    ws.send(bytes((channel,)) + (data if isinstance(data, bytes) else json.dumps(data).encode()))


def test_a_terminal(api: Api) -> None:
    process = api.start("stty -echo; echo ready; read a; stty size; read b; echo got $a $b; exit 7", pty=True)
    with attach(api, process["id"], "?from=0") as ws:
        hello = control(ws)
        assert (hello["type"], hello["offsets"], hello["process"]["pty"]) == ("hello", {"out": 0}, True)
        until(ws, b"ready")
        send(ws, CONTROL, {"type": "resize", "cols": 91, "rows": 17})
        send(ws, INPUT, b"one\r")
        assert b"17 91" in until(ws, b"17 91")
        send(ws, INPUT, b"two\r")
        until(ws, b"got one two")
        exited = control(ws)
        assert (exited["type"], exited["process"]["exit_code"]) == ("exit", 7)
        with pytest.raises(ConnectionClosed):
            ws.recv(timeout=60)
        assert ws.close_code == 1000


def test_two_streams_bytes_and_the_end_of_input(api: Api) -> None:
    process = api.start("echo err >&2; exec cat", stdin=True, split=True)
    with attach(api, process["id"], "?from=0") as ws:
        assert control(ws)["offsets"] == {"out": 0, "err": 0}
        assert receive(ws) == (ERRORS, b"err\n")
        send(ws, INPUT, bytes(range(256)) * 1000)
        send(ws, CONTROL, {"type": "eof"})
        found = b""
        while True:
            channel, data = receive(ws)
            if channel == CONTROL:
                break
            found += data
        assert found == bytes(range(256)) * 1000
        assert json.loads(data)["offsets"] == {"out": 256_000, "err": 4}


def test_an_invalid_message_is_answered_with_an_error_and_the_rest_goes_on(api: Api) -> None:
    process = api.start("sleep 60")
    with attach(api, process["id"]) as ws:
        assert control(ws)["type"] == "hello"
        for wrong in (b"", b"\x07x", b"\x03{", b'\x03{"type": "dance"}', b'\x03{"type": "resize", "cols": "x"}'):
            ws.send(wrong)
        ws.send("[]")
        send(ws, INPUT, b"not read")
        codes = [control(ws)["code"] for _ in range(6)]
        assert codes == ["bad_value"] * 5 + ["stdin_closed"]
        send(ws, CONTROL, {"type": "signal", "signal": "TERM"})
        assert control(ws)["process"]["signal"] == 15


def test_a_client_that_disconnects_leaves_the_process_running(api: Api) -> None:
    process = api.start("cat", stdin=True)
    with attach(api, process["id"]) as ws:
        assert control(ws)["type"] == "hello"
    assert api.ask("GET", f"/api/v1/processes/{process['id']}").value["status"] == "running"
    with attach(api, process["id"]) as ws:
        control(ws)
        send(ws, INPUT, b"again\n")
        until(ws, b"again")


def test_clients_that_are_refused(tcp: Api) -> None:
    process = tcp.start("sleep 60")["id"]
    refusals: list[tuple[int, dict[str, Any]]] = [
        (401, {"additional_headers": {}}),
        (401, {"additional_headers": {"Authorization": "Bearer wrong"}}),
        (403, {"origin": "http://evil.example"}),
    ]
    for status, options in refusals:
        with pytest.raises(InvalidStatus) as refused, attach(tcp, process, **options):
            pass
        assert refused.value.response.status_code == status, options
    with pytest.raises(InvalidStatus) as refused, attach(tcp, "nope"):
        pass
    assert refused.value.response.status_code == 404
    assert b"not_found" in (refused.value.response.body or b"")
    assert tcp.address is not None
    sock = socket.create_connection(tcp.address)
    headers = {"Authorization": f"Bearer {tcp.token}"}
    elsewhere = f"ws://evil.example/api/v1/processes/{process}/attach"
    with pytest.raises(InvalidStatus) as refused, connect(elsewhere, sock=sock, additional_headers=headers):
        pass
    assert refused.value.response.status_code == 403
    browser = ["holdfast.v1", f"holdfast.token.{tcp.token}"]
    with attach(tcp, process, additional_headers={}, subprotocols=browser, origin=tcp.url) as ws:
        assert ws.subprotocol == "holdfast.v1"
        assert control(ws)["type"] == "hello"


def test_open_streams_do_not_keep_the_daemon_from_stopping(own: Api) -> None:
    process = own.start("sleep 60")["id"]
    events = {"Accept": "text/event-stream"}
    with attach(own, process) as ws, own.asking(f"/api/v1/processes/{process}/log", events):
        assert control(ws)["type"] == "hello"
        pid = own.client.status()["pid"]
        stopped = own.ask("POST", "/api/v1/daemon/stop").value
        assert stopped["left"] == [process]
        eventually(lambda: not _runs(pid))
        with pytest.raises(ConnectionClosed):
            control(ws)
        assert ws.close_code == 1012  # come back later


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_process_names_its_attached_clients_and_who_typed_last(
    api: Api, shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(shared_home))
    process = api.client.run("exec cat", pty=True)
    assert (process.attached, process.typed) == ([], None)
    with attach(api, process.id):
        clients = eventually(lambda: _inspect(process.id)["attached"])
        assert [client["by"] for client in clients] == ["default"]
        api.client.send(process.id, "hello", enter=True)
        typed = _inspect(process.id)["typed"]
        assert typed["by"] == "tests"
        assert process.started_at <= clients[0]["since"] <= typed["at"]
        shown = [line.split() for line in run_cli("inspect", process.id).stdout.decode().splitlines()]
        assert ["attached", "default", "since"] in [words[:3] for words in shown]
        assert ["last", "typed", "tests,"] in [words[:3] for words in shown]
    eventually(lambda: _inspect(process.id)["attached"] == [])
    api.client.kill(process.id, grace=0.1)
    found = api.ask("GET", f"/api/v1/processes/{process.id}").value
    assert (found["attached"], found["typed"]) == ([], typed)


def _inspect(process: str) -> Any:
    return json.loads(run_cli("inspect", "--json", process).stdout)
