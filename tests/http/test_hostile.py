"""Clients that are slow, long-winded, many, or no HTTP clients at all."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.client.http.parser import InvalidHttp, ResponseParser
from holdfast.http.negotiate import choose
from tests.http.asking import Api
from tests.http.test_bus import opened


def raw(api: Api, data: bytes, timeout: float = 15.0) -> bytes:
    """What comes back until the other side hangs up."""
    connection = api.connect()
    connection.connect()
    sock = connection.sock
    assert sock is not None
    sock.settimeout(timeout)
    found = b""
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
            sock.sendall(data)
        while piece := sock.recv(1 << 16):
            found += piece
    except ConnectionResetError:
        pass
    finally:
        connection.close()
    return found


@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/v1/kill HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_what_is_no_http(api: Api, data: bytes) -> None:
    found = raw(api, data)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"bad_value"' in found


def test_headers_fit_into_64_kib_however_they_come(api: Api) -> None:
    head = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: "
    assert raw(api, head + b"x" * 60_000 + b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    for size in (66_000, 90_000, 200_000):
        found = raw(api, head + b"x" * size + b"\r\n\r\n")
        assert found == b"" or found.startswith(b"HTTP/1.1 431 "), size
    found = raw(api, b"GET /livez?" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert found == b"" or found.startswith(b"HTTP/1.1 431 ")


def test_headers_without_an_end_are_cut(api: Api) -> None:
    found = raw(api, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000)
    assert found == b"" or found.startswith(b"HTTP/1.1 431 ")
    many = b"".join(b"X-%d: %s\r\n" % (n, b"y" * 100) for n in range(2000))
    found = raw(api, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + many)
    assert found == b"" or found.startswith(b"HTTP/1.1 431 ")


@pytest.mark.full
@pytest.mark.slow
def test_a_drip_is_not_waited_for(tcp: Api) -> None:
    """Neither one that says nothing nor one that adds a byte now and then; others are served meanwhile."""
    assert tcp.address is not None
    silent = socket.create_connection(tcp.address)
    drip = socket.create_connection(tcp.address)
    drip.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ")
    began = time.monotonic()
    for sock in (silent, drip):
        sock.settimeout(0.5)
    closed: dict[socket.socket, float] = {}
    while len(closed) < 2 and time.monotonic() - began < 30:
        for sock in {silent, drip} - closed.keys():
            try:
                if sock is drip:
                    sock.sendall(b"x")
                if not sock.recv(1000):
                    closed[sock] = time.monotonic() - began
            except TimeoutError:
                continue
            except OSError:
                closed[sock] = time.monotonic() - began
        assert tcp.ask("GET", "/livez").status == 200
    silent.close()
    drip.close()
    assert len(closed) == 2
    assert max(closed.values()) < 20


_LIVEZ = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
_NO_TOKEN = b"GET /api/v1/processes HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /api/v1/pro", id="half", marks=pytest.mark.full),
        pytest.param(_NO_TOKEN, id="refused", marks=pytest.mark.full),
        pytest.param(_LIVEZ, id="open", marks=pytest.mark.full),
    ],
)
def test_connections_without_a_token_keep_no_one_out(own: Api, sent: bytes) -> None:
    assert own.address is not None
    headers = {"Authorization": f"Bearer {own.token}"}
    before = own.connect()
    before.request("GET", "/api/v1/processes", headers=headers)
    assert before.getresponse().read() is not None
    crowd = []
    try:
        for _ in range(1200):
            crowd.append(socket.create_connection(own.address))
            if sent:
                crowd[-1].sendall(sent)
        assert own.ask("GET", "/api/v1/processes").status == 200
        before.request("GET", "/api/v1/processes", headers=headers)  # it was not closed for the others
        assert before.getresponse().status == 200
    finally:
        before.close()
        for sock in crowd:
            sock.close()


def test_many_idle_connections_are_harmless(tcp: Api) -> None:
    assert tcp.address is not None
    idle = [socket.create_connection(tcp.address) for _ in range(300)]
    began = time.monotonic()
    assert tcp.ask("GET", "/api/v1/processes").status == 200
    assert tcp.client.ps() == []
    assert time.monotonic() - began < 20
    for sock in idle:
        sock.close()


def test_requests_behind_each_other_on_one_connection(api: Api) -> None:
    connection = api.connect()
    headers = {"Authorization": f"Bearer {api.token}"} if api.token else {}
    for _ in range(3):
        connection.request("GET", "/readyz", headers=headers)
        assert connection.getresponse().read() == b"ok\n"
    connection.close()
    token = f"Authorization: Bearer {api.token}\r\n".encode() if api.token else b""
    piped = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n" + token
    found = raw(api, (piped + b"\r\n") * 2 + piped + b"Connection: close\r\n\r\n")
    assert found.count(b"HTTP/1.1 200 OK") == 3


@given(st.binary(max_size=300), st.integers(1, 20), st.booleans())
def test_responses_however_cut(body: bytes, cut: int, chunked: bool) -> None:
    if chunked:
        chunks = [body[at : at + 7] for at in range(0, len(body), 7)]
        framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    else:
        framed, head = body, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    data = b"HTTP/1.1 100 Continue\r\n\r\n" + head + framed
    parser = ResponseParser()
    found = b""
    for at in range(0, len(data), cut):
        found += b"".join(parser.feed(data[at : at + cut]))
    assert (found, parser.is_over, parser.status, parser.keeps_alive) == (body, True, 200, True)


@given(st.binary(min_size=1, max_size=200))
def test_nonsense_is_no_response(data: bytes) -> None:
    parser = ResponseParser()
    try:
        parser.feed(data + b"\n\n")
    except InvalidHttp:
        return
    assert not parser.is_over


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, "a/b"),
        ("", "a/b"),
        ("*/*", "a/b"),
        ("c/d", "c/d; charset=utf-8"),
        ("c/*;q=0.9, a/b;q=0.1", "c/d; charset=utf-8"),
        ("a/b;q=0, */*", "c/d; charset=utf-8"),
        ("x/y", None),
        ("a/b;q=nonsense", None),
        (";;;,,", None),
    ],
)
def test_what_is_accepted(accept: str | None, chosen: str | None) -> None:
    assert choose(accept, ["a/b", "c/d; charset=utf-8"]) == chosen


def _long(pattern: bytes, before: bytes = b'{"labels":', after: bytes = b"}") -> bytes:
    return before + pattern * (_LONG // len(pattern)) + after


_LONG = 15_000_000
_LONG_BODIES = {
    "lists": _long(b"[],", b'{"labels":[', b"[]]}"),
    "numbers": _long(b"1,", b'{"labels":[', b"1]}"),
    "objects": _long(b'{"a":1},', b'{"labels":[', b"1]}"),
    "keys": b'{"labels":{' + b",".join(b'"%d":1' % number for number in range(1_000_000)) + b"}}",
    "nested lists": _long(b"["),
    "nested objects": _long(b'{"a":'),
    "one number": _long(b"1"),
    "one fraction": _long(b"1", b'{"labels":1.'),
    "escapes": _long(rb"\u0041", b'{"labels":"', b'"}'),
    "backslashes": _long(rb"\\", b'{"labels":"', b'"}'),
}


@pytest.mark.parametrize("kind", _LONG_BODIES)
def test_a_long_body_delays_no_other_client(own: Api, kind: str) -> None:
    body = _LONG_BODIES[kind]
    with undelayed(own):
        reply = own.ask("POST", "/api/v1/processes", body, {"Content-Type": "application/json"})
    assert reply.status in (400, 413), reply


_LONG_MESSAGES = {
    "frames that are none": _long(b"{},", b"[", b"{}]"),
    "numbers": _long(b"1,", b"[", b"1]"),
    "one frame": _long(b"1,", b'{"_bus_relay":true,"topic":"a.b","envelope":{"x":[', b"1]}}"),
    "frames": _long(b'{"topic":"a.b","envelope":{}},', b"[", b"{}]"),
}


@pytest.mark.parametrize("path", ["/api/pub", "/api/v1/sessions/default/inbox", "attach"])
@pytest.mark.parametrize("kind", _LONG_MESSAGES)
def test_a_long_message_on_a_websocket_delays_no_other_client(own: Api, path: str, kind: str) -> None:
    if path == "attach":
        path = f"/api/v1/processes/{own.start('sleep 1000', pty=True)['id']}/attach"
    with undelayed(own), opened(own, path, max_size=None) as ws:
        ws.send(_LONG_MESSAGES[kind].decode())
        while "bad_value" not in str(ws.recv(timeout=15)):
            pass


def test_a_long_message_of_a_bridge_is_taken(own: Api) -> None:
    """With as many events as one may bring, each with many fields."""
    envelope = {"type": "long.event", **{f"field{count}": count for count in range(50)}}
    frames = [
        {"_bus_relay": True, "topic": "long.event", "envelope": envelope, "bridge": "b", "n": n} for n in range(1, 2001)
    ]
    with opened(own, "/api/pub", max_size=None) as ws:
        ws.send(json.dumps(frames))
        assert json.loads(ws.recv(timeout=15)) == {"ack": 2000, "bridge": "b"}


@contextlib.contextmanager
def undelayed(own: Api) -> Iterator[None]:
    """Another client is answered at once meanwhile. A busy machine may delay one answer, so that what the daemon does
    before it is counted in time on a processor.
    """
    daemon = own.client.status()["pid"]
    taken: list[float] = []
    used: list[float] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set() or len(taken) <= 10:
            began, before = time.monotonic(), _processor_time(daemon)
            own.client.ps()
            taken.append(time.monotonic() - began)
            used.append(_processor_time(daemon) - before)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        is_over.set()
        asking.join()
    assert statistics.median(taken) < 0.2
    assert max(used) < 1.0, sorted(used)[-5:]


def _processor_time(pid: int) -> float:
    """That the process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_body_is_no_longer_than_its_operation_allows(own: Api) -> None:
    process = own.start("sleep 1000", pty=True)
    body = b'{"cols":80,"rows":24' + b" " * 1_000_000 + b"}"
    path = f"/api/v1/processes/{process['id']}/resize"
    assert own.ask("POST", path, body, {"Content-Type": "application/json"}).status == 413
    assert own.ask("POST", path, {"cols": 80, "rows": 24}).status in (200, 204)


def test_a_long_text_of_many_signs_is_no_long_list(own: Api) -> None:
    process = own.start("cat > /dev/null", stdin=True)
    text = '[{"a": "\\\\ \\"",\n' * 100_000
    reply = own.ask("POST", f"/api/v1/processes/{process['id']}/stdin", {"text": text})
    assert reply.status in (200, 204), reply
