"""The daemon's events over HTTP: pages, streams, WebSockets, publishing, and what bridges bring."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect, unix_connect

import holdfast
from tests.events.pruning import prune
from tests.http.asking import Api, events
from tests.support import eventually, run_cli

STREAM = {"Accept": "text/event-stream"}


@contextmanager
def opened(api: Api, path: str, **options: Any) -> Iterator[ClientConnection]:
    if api.address is None:
        with unix_connect(api.client.paths.socket, f"ws://localhost{path}", **options) as here:
            yield here
    else:
        options.setdefault("additional_headers", {"Authorization": f"Bearer {api.token}"})
        with connect(f"ws://{api.address[0]}:{api.address[1]}{path}", **options) as there:
            yield there


def receive(ws: ClientConnection) -> Any:
    return json.loads(ws.recv(timeout=60))


def publish(api: Api, topic: str, payload: dict[str, Any] | None = None) -> int:
    reply = api.ask("POST", "/api/v1/events", {"topic": topic, "payload": payload})
    assert reply.status == 200, reply
    return int(reply.value["seq"])


def kept(api: Api, pattern: str, since: int) -> list[dict[str, Any]]:
    with api.client.events(pattern, since=since) as found:
        return list(found)


def ignored(api: Api) -> int:
    return int(api.client.status()["ignored_frames"])


def test_pages_go_on_where_the_one_before_ended(api: Api) -> None:
    numbers = [publish(api, f"page.{count % 2}", {"count": count}) for count in range(7)]
    path, found, since = "/api/v1/events?pattern=page.0%20nothing.*&limit=2", [], numbers[0] - 1
    while True:
        page = api.ask("GET", f"{path}&since={since}").value
        found += [event["seq"] for event in page["events"]]
        assert page["newest"] == numbers[-1]
        assert page["oldest"] == 1
        since = page["next"]
        if not page["events"]:
            break
    assert found == numbers[::2]
    assert since == numbers[-1]


def test_a_stream_of_events_is_resumed(api: Api) -> None:
    first = publish(api, "stream.a")
    with api.asking(f"/api/v1/events?pattern=stream.*&since={first - 1}", STREAM) as response:
        found = events(response)
        assert next(found) == (str(first - 1), "place", {"since": first - 1})
        assert next(found)[2]["type"] == "stream.a"
        second = publish(api, "stream.b")
        assert next(found)[0] == str(second)
    third = publish(api, "stream.c")
    headers = {**STREAM, "Last-Event-ID": str(second)}
    with api.asking("/api/v1/events?pattern=stream.*", headers) as response:
        found = events(response)
        next(found)
        assert next(found)[0] == str(third)


def test_a_websocket_sends_arrays_and_resumes_from_a_number(api: Api) -> None:
    with opened(api, "/api/v1/events?pattern=socket.**") as ws:
        begin = receive(ws)
        assert begin["type"] == "hello"
        numbers = [publish(api, f"socket.{count}", {"count": count}) for count in range(3)]
        publish(api, "other.x")
        found: list[Any] = []
        while len(found) < 3:
            found += receive(ws)
        assert [event["seq"] for event in found] == numbers
    with opened(api, f"/api/v1/events?pattern=socket.**&since={begin['since']}") as ws:
        assert receive(ws) == {"type": "hello", "since": begin["since"]}
        assert [event["seq"] for event in receive(ws)] == numbers


@pytest.mark.parametrize(
    "query", ["since=999999999", "since=x", "pattern=a..%20%00", "pattern=", "limit=3", "nope=1", "follow=false"]
)
def test_invalid_requests_open_no_websocket(api: Api, query: str) -> None:
    with pytest.raises(InvalidStatus) as refused, opened(api, f"/api/v1/events?{query}"):
        pass
    assert refused.value.response.status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        {"topic": ""},
        {"topic": "a b"},
        {"topic": "a", "payload": 3},
        {"payload": {}},
        {"topic": "x" * 300},
        {"topic": "a", "payload": {"x": "y" * (300 << 10)}},
        b'{"topic": "a", "payload": {"endless": 1e999}}',
    ],
)
def test_invalid_events_are_refused(api: Api, body: Any) -> None:
    headers = {"Content-Type": "application/json"}
    assert api.ask("POST", "/api/v1/events", body, headers).code == "bad_value"
    assert publish(api, "still.there") > 0


@pytest.mark.full
def test_a_reader_that_does_not_read_loses_nothing(tcp: Api) -> None:
    first = publish(tcp, "slow.begin")
    with opened(tcp, f"/api/v1/events?pattern=slow.*&since={first}", max_queue=1) as ws:
        assert receive(ws)["type"] == "hello"
        with opened(tcp, "/api/pub") as pub:
            for count in range(6000):
                envelope = {"count": count, "text": "x" * 500}
                pub.send(json.dumps({"_bus_relay": True, "topic": "slow.x", "envelope": envelope}))
            eventually(lambda: publish(tcp, "slow.look") > first + 6000, timeout=60, pause=0.2)
        found: list[int] = []
        while len(found) < 6000:
            found += [event["count"] for event in receive(ws) if event["type"] == "slow.x"]
    assert found == list(range(6000))


def test_both_shapes_are_published_and_acknowledged_and_none_comes_twice(api: Api) -> None:
    before = publish(api, "frames.begin")
    bridge = os.urandom(4).hex()
    relay = {"_bus_relay": True, "topic": "frames.a", "envelope": {"type": "frames.a", "ts": 5.5, "src": "elsewhere"}}
    params = {"type": "key", "session_id": "s1", "payload": {"key": "x", "type": "hidden"}}
    call = {"jsonrpc": "2.0", "method": "event", "params": params}
    with opened(api, "/api/pub") as ws:
        ws.send(json.dumps({**relay, "bridge": bridge, "n": 1}))
        assert receive(ws) == {"ack": 1, "bridge": bridge}
        ws.send(json.dumps([{**relay, "bridge": bridge, "n": 1}, {**call, "bridge": bridge, "n": 2}]))
        assert receive(ws) == {"ack": 2, "bridge": bridge}
    with opened(api, "/api/pub") as ws:
        ws.send(json.dumps({**call, "bridge": bridge, "n": 2}))
        assert receive(ws) == {"ack": 2, "bridge": bridge}
        ws.send(json.dumps(call))
        eventually(lambda: len(kept(api, "tui.*", before)) == 2)
    (relayed,) = kept(api, "frames.*", before)
    assert (relayed["ts"], relayed["src"]) == (5.5, "elsewhere")
    called = kept(api, "tui.*", before)[0]
    assert (called["type"], called["session_id"], called["key"]) == ("tui.key", "s1", "x")


def test_hostile_frames_are_counted_and_break_nothing(api: Api) -> None:
    before, begin = ignored(api), publish(api, "hostile.begin")
    relay: dict[str, Any] = {"_bus_relay": True, "topic": "hostile.x", "envelope": {}}
    frames: list[Any] = [
        *("", "{", "[]", "null", "3", '"text"', "[[[", "[" * 100_000, "NaN", '{"a": 1e999}', b"bytes", b""),
        *({}, {"_bus_relay": 1}, {**relay, "topic": ""}, {**relay, "topic": 3}, {**relay, "envelope": [1]}),
        *({**relay, "topic": "a b"}, {**relay, "topic": "x" * 300}, {**relay, "envelope": {"type": 3}}),
        *({**relay, "envelope": {"x": "y" * (300 << 10)}}, {**relay, "n": 1}, {**relay, "bridge": "", "n": 1}),
        *({**relay, "bridge": "b", "n": 0}, {**relay, "bridge": "b", "n": True}, {**relay, "bridge": "b", "n": 1.5}),
        *({**relay, "bridge": "b", "n": 1 << 70}, {**relay, "bridge": "b" * 65, "n": 1}),
        {"jsonrpc": "2.0", "method": "other", "params": {}},
        {"jsonrpc": "2.0", "method": "event", "params": {"type": "", "payload": {}}},
        {"jsonrpc": "1.0", "method": "event", "params": {"type": "x"}},
        '{"_bus_relay": true, "topic": "hostile.x", "envelope": {"endless": 1e999}}',
        '{"_bus_relay": true, "topic": "hostile.x", "envelope": ' + '{"a":' * 900 + "1" + "}" * 901,
    ]
    with opened(api, "/api/pub") as ws:
        for frame in frames:
            ws.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))
        eventually(lambda: ignored(api) == before + len(frames))
        bridge = os.urandom(4).hex()
        ws.send(json.dumps({**relay, "topic": "hostile.end", "bridge": bridge, "n": 7}))
        assert receive(ws) == {"ack": 7, "bridge": bridge}
    assert [event["type"] for event in kept(api, "hostile.*", begin)] == ["hostile.end"]
    assert f"holdfast_bridge_ignored_total {ignored(api)}" in api.ask("GET", "/metrics").body.decode()


def test_ignored_frames_are_acknowledged_all_the_same(api: Api) -> None:
    with opened(api, "/api/pub") as ws:
        ws.send(json.dumps({"_bus_relay": True, "topic": "a b", "envelope": {}, "bridge": "ign", "n": 3}))
        assert receive(ws) == {"ack": 3, "bridge": "ign"}


@pytest.mark.parametrize("path", ["/api/pub", "/api/v1/events"])
def test_clients_that_are_accepted(tcp: Api, path: str) -> None:
    def status(headers: dict[str, str], **options: Any) -> int:
        with pytest.raises(InvalidStatus) as refused, opened(tcp, path, additional_headers=headers, **options):
            pass
        return refused.value.response.status_code

    known = {"Authorization": f"Bearer {tcp.token}"}
    assert status({}) == 401
    assert status({"Authorization": "Bearer wrong"}) == 401
    assert status(known, origin="http://evil.example") == 403
    assert tcp.ask("GET", "/api/pub").status == 426
    with opened(tcp, path, additional_headers={}, subprotocols=["holdfast.v1", f"holdfast.token.{tcp.token}"]) as ws:
        assert ws.subprotocol == "holdfast.v1"
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    headers = {**upgrade, "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Host": "evil.example"}
    assert tcp.ask("GET", path, headers=headers).status == 403


def test_numbers_of_a_bridge_survive_a_crash(own: Api) -> None:
    frame = {"_bus_relay": True, "topic": "crash.x", "envelope": {}, "bridge": "crash"}
    with opened(own, "/api/pub") as ws:
        ws.send(json.dumps([{**frame, "n": n} for n in (1, 2, 3)]))
        assert receive(ws)["ack"] == 3
        os.kill(own.client.status()["pid"], signal.SIGKILL)
        with pytest.raises(ConnectionClosed):
            ws.recv(timeout=60)
    own.client.status()
    own.address = None
    with opened(own, "/api/pub") as ws:
        ws.send(json.dumps([{**frame, "n": n} for n in (2, 3, 4)]))
        assert receive(ws)["ack"] == 4
    assert len(kept(own, "crash.*", 0)) == 4


def test_followers_get_a_close_code_when_the_daemon_stops(own: Api) -> None:
    with opened(own, "/api/v1/events") as ws, opened(own, "/api/pub") as pub:
        assert receive(ws)["type"] == "hello"
        run_cli("daemon", "stop")
        for one in (ws, pub):
            with pytest.raises(ConnectionClosed):
                one.recv(timeout=60)
            assert one.close_code == 1012


def test_search_and_top(api: Api) -> None:
    process = api.start("seq 1 100; exec sleep 60")
    path = f"/api/v1/processes/{process['id']}/search"
    eventually(lambda: api.ask("GET", f"{path}?pattern=%5E100%24").value["count"] == 1)
    page = api.ask("GET", f"{path}?pattern=7&limit=3").value
    assert [match["line"] for match in page["matches"]] == [6, 16, 26]
    rest = api.ask("GET", f"{path}?pattern=7&from={page['next']['from']}&line={page['next']['line']}").value
    assert page["count"] + rest["count"] == 19
    assert api.ask("GET", f"{path}?pattern=(").code == "bad_value"
    assert api.ask("GET", path).code == "bad_value"
    used = api.ask("GET", "/api/v1/top?sort=memory").value
    assert process["id"] in [row["id"] for row in used["processes"]]
    assert api.ask("GET", "/api/v1/top?sort=beauty").code == "bad_value"


def test_the_python_clients_read_events_over_http(tcp: Api) -> None:
    with holdfast.connect(url=tcp.url, token=tcp.token) as hf:
        first = hf.publish("clients.a", {"x": 1})
        with hf.events("clients.*", since=first - 1) as found:
            assert [event["x"] for event in found] == [1]
        with hf.events("clients.*", since=first, follow=True) as found:
            second = hf.publish("clients.b")
            assert next(found)["seq"] == second


def test_a_gap_is_marked_in_every_form(own: Api, home: Path) -> None:
    oldest = prune(home)
    own.open_tcp()
    path = "/api/v1/events?pattern=old.*&since=3"
    gap = {"type": "events.gap", "src": "events", "seq": oldest - 1, "count": oldest - 4}
    with own.asking(path, STREAM) as response:
        found = events(response)
        next(found)
        number, _, marked = next(found)
        assert (number, {**marked, "ts": 0}) == (str(oldest - 1), {**gap, "ts": 0})
        assert next(found)[0] == str(oldest)
    with opened(own, path) as ws:
        receive(ws)
        marked, first, *_ = receive(ws)
        assert ({**marked, "ts": 0}, first["seq"]) == ({**gap, "ts": 0}, oldest)
    page = own.ask("GET", f"{path}&limit=1").value
    assert ([one["type"] for one in page["events"]], page["next"]) == (["events.gap"], oldest - 1)
    page = own.ask("GET", "/api/v1/events?pattern=old.*&limit=1").value
    assert [one["seq"] for one in page["events"]] == [oldest]
