"""The inbox over HTTP: pages, server-sent events, a WebSocket; and what a start may promise."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
from websockets.sync.client import ClientConnection, connect, unix_connect

from tests.http.asking import Api, events
from tests.support import eventually

SSE = {"Accept": "text/event-stream"}


@contextmanager
def opened(api: Api, path: str) -> Iterator[ClientConnection]:
    if api.address is None:
        directory = os.open(os.path.dirname(api.client.paths.socket), os.O_PATH)
        try:
            with unix_connect(f"/proc/self/fd/{directory}/daemon.sock", f"ws://localhost{path}") as ws:
                yield ws
        finally:
            os.close(directory)
        return
    headers = {"Authorization": f"Bearer {api.token}"}
    with connect(f"{api.url.replace('http', 'ws', 1)}{path}", additional_headers=headers) as ws:
        yield ws


def receive(ws: ClientConnection) -> Any:
    return json.loads(ws.recv(timeout=60))


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"s/{request.node.name} ü"


def path(name: str, rest: str = "/inbox") -> str:
    return f"/api/v1/sessions/{quote(name, safe='')}{rest}"


def ended(api: Api, name: str, command: str = "true", **options: Any) -> str:
    process = api.start(command, session=name, **options)
    assert api.ask("GET", f"/api/v1/processes/{process['id']}/wait").value["done"]
    return str(process["id"])


def pending(api: Api, name: str) -> list[Any]:
    return [one["process"] for one in api.ask("GET", path(name)).value["notifications"]]


def test_a_page_waits_and_is_acknowledged(api: Api, name: str) -> None:
    assert api.ask("GET", f"{path(name)}?wait=0.05").value["notifications"] == []
    process = ended(api, name, "echo hi; exit 3", origin={"chat": 1}, notify="any")
    (notice,) = api.ask("GET", f"{path(name)}?wait=4").value["notifications"]
    assert (notice["process"], notice["origin"], notice["source"]) == (process, {"chat": 1}, "system")
    other = api.ask("POST", path("another", "/inbox/ack"), {"ids": [notice["id"]]}).value
    assert other["unknown"] == [notice["id"]]
    answer = api.ask("POST", path(name, "/inbox/ack"), {"ids": [notice["id"], "note_x"]}).value
    assert (answer["acked"], answer["unknown"]) == ([notice["id"]], ["note_x"])
    assert pending(api, name) == []


def test_events_come_once_on_a_stream_and_again_on_the_next(api: Api, name: str) -> None:
    first = ended(api, name)
    with api.asking(path(name), headers=SSE) as response:
        found = events(response)
        id_, kind, notice = next(found)
        assert (id_, kind, notice["process"]) == (notice["id"], "notification", first)
        second = ended(api, name)
        assert next(found)[2]["process"] == second
    with api.asking(path(name), headers=SSE) as response:
        found = events(response)
        assert [next(found)[2]["process"] for _ in range(2)] == [first, second]


def test_a_window_goes_on_after_an_acknowledgement(api: Api, name: str) -> None:
    first, second = ended(api, name), ended(api, name)
    with api.asking(f"{path(name)}?window=1&take=true", headers=SSE) as response:
        found = events(response)
        notice = next(found)[2]
        assert notice["process"] == first
        taken = api.ask("GET", f"{path(name)}?take=true&limit=1").value["notifications"]
        assert [one["process"] for one in taken] == [second]  # it was not out yet
        for one in (notice, taken[0]):
            api.ask("POST", path(name, "/inbox/ack"), {"ids": [one["id"]]})
        assert next(found)[1] == "idle"
        third = ended(api, name)
        assert next(found)[2]["process"] == third


def test_a_websocket_sends_notifications_and_receives_acks(api: Api, name: str) -> None:
    first = ended(api, name)
    with opened(api, path(name)) as ws:
        notice = receive(ws)
        assert notice["process"] == first
        process = api.start("read line", session=name, stdin=True)
        api.ask("POST", f"/api/v1/processes/{process['id']}/stdin", {"text": "go", "enter": True})
        assert receive(ws)["process"] == process["id"]
        ws.send(json.dumps({"ack": [notice["id"], "note_x"]}))
        assert receive(ws) == {"type": "acked", "acked": [notice["id"]], "known": [], "unknown": ["note_x"]}
        for nonsense in ("[", '"x"', "{}", '{"ack": 1}', '{"ack": []}', '{"ack": [1]}', '{"ack": ["x"], "b": 1}', b"x"):
            ws.send(nonsense)
            assert receive(ws)["type"] == "error"
    with opened(api, path(name)) as ws:
        assert receive(ws)["process"] == process["id"]


def test_a_stream_goes_on_when_its_session_is_renamed(api: Api, name: str) -> None:
    with opened(api, path(name)) as ws:
        assert api.ask("POST", path(name, "/rename"), {"to": f"{name} 2"}).value["processes"] == []
        process = ended(api, name)
        notice = receive(ws)
        assert (notice["process"], notice["session"]) == (process, f"{name} 2")


def test_other_sessions_get_nothing(api: Api, name: str) -> None:
    with opened(api, path(f"{name} b")) as ws:
        ended(api, name)
        process = ended(api, f"{name} b")
        assert receive(ws)["process"] == process


def test_digest_transfer_and_end(api: Api, name: str) -> None:
    process = api.start("echo up; exec sleep 100", session=name, parent_session="parent")
    eventually(lambda: "up" in api.ask("GET", path(name, "/digest")).value["text"])
    answer = api.ask("POST", f"/api/v1/processes/{process['id']}/transfer", {"to": f"{name} 2"}).value
    assert answer["process"]["session"] == f"{name} 2"
    answer = api.ask("POST", path(f"{name} 2", "/end")).value
    assert answer["passed"] == [{"id": process["id"], "to": "parent"}]
    answer = api.ask("POST", path("parent", "/end"), {"to": "x"}).value
    assert answer["passed"] == [{"id": process["id"], "to": "x"}]


def test_a_wait_and_a_log_of_the_owner_consume(api: Api, name: str) -> None:
    mine = {"Holdfast-Session": name.encode().decode("latin-1")}
    waited = api.start("exit 3", session=name)["id"]
    assert api.ask("GET", f"/api/v1/processes/{waited}/wait", headers=mine).value["consumes"]
    for view in ("", "&view=raw"):
        process = ended(api, name)
        api.ask("GET", f"/api/v1/processes/{process}/log", headers=mine)
        api.ask("GET", f"/api/v1/processes/{process}/wait?consume=false", headers=mine)
        assert pending(api, name) == [process]
        api.ask("GET", f"/api/v1/processes/{process}/log?consume=true{view}", headers=mine)
        assert pending(api, name) == []


@pytest.mark.parametrize(
    ("method", "where", "body"),
    [
        ("GET", "/inbox?wait=-1", None),
        ("GET", "/inbox?wait=soon", None),
        ("GET", "/inbox?limit=0", None),
        ("GET", "/inbox?window=3", None),
        ("POST", "/inbox/ack", {"ids": []}),
        ("POST", "/inbox/ack", {"ids": "x"}),
        ("POST", "/inbox/ack", {}),
        ("POST", "/inbox/ack", {"ids": ["x"], "more": 1}),
        ("POST", "/rename", {"to": ""}),
        ("POST", "/rename", {"to": 7}),
        ("POST", "/end", {"to": "x", "keep": True}),
        ("POST", "/end", {"keep": "x"}),
    ],
)
def test_invalid_requests_are_refused(api: Api, method: str, where: str, body: Any) -> None:
    assert api.ask(method, path("a", where), body).code == "bad_value"
    if body is None:
        assert api.ask(method, path("\n", where)).code == "bad_value"


def test_streams_go_on_after_a_crash(own: Api, name: str) -> None:
    process = ended(own, name)
    with opened(own, path(name)) as ws:
        assert receive(ws)["process"] == process
        os.kill(own.client.status()["pid"], signal.SIGKILL)
    own.client.status()
    own.open_tcp()
    with opened(own, path(name)) as ws:
        notice = receive(ws)
        ws.send(json.dumps({"ack": [notice["id"]]}))
        assert receive(ws)["acked"] == [notice["id"]]
    assert pending(own, name) == []
