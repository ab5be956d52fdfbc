"""/mcp with the official client, in the newest protocol and in that of the handshake."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.errors import Unreachable
from holdfast.http.routes.mcp import whole_events
from tests.mcp.deeds import use_everything
from tests.mcp.host import NEW, OLD, http, open_http
from tests.support import content_of, eventually, is_alive, processes_of, run_cli


@pytest.mark.parametrize("mode", [OLD, NEW])
def test_every_tool_and_action(instance: Path, mode: str) -> None:
    async def use() -> None:
        async with http(mode) as host:
            await use_everything(host)

    asyncio.run(use())


def post(url: str, headers: dict[str, str], body: bytes = b"{}") -> tuple[int, dict[str, str], bytes]:
    """A request as any program makes it."""
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=30)
    try:
        connection.request("POST", where.path, body, {"content-type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


_ACCEPT = {"accept": "application/json, text/event-stream"}
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": ""}, 401),
        ({"host": "evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
    ],
)
def test_strangers_are_not_let_in(instance: Path, changed: dict[str, str], status: int) -> None:
    url, key = open_http()
    found, headers, body = post(url, {**key, **_ACCEPT, **changed}, json.dumps(_HELLO).encode())
    assert found == status
    assert headers["content-type"] == "application/problem+json"
    assert json.loads(body)["code"] == "denied"


def test_what_is_too_large_is_refused(instance: Path) -> None:
    url, key = open_http()
    status, _, _ = post(url, {**key, **_ACCEPT, "content-length": str(1 << 30)})
    assert status == 413


def test_what_is_no_message_of_the_protocol_is_said(instance: Path) -> None:
    url, key = open_http()
    status, _, body = post(url, {**key, **_ACCEPT}, b"no json")
    assert status == 400 and b"jsonrpc" in body


def sockets(pid: int) -> set[str]:
    """What a process has open, each by a name of its own."""
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return {name for name in found if name.startswith("socket:")}


def worker(home: Path) -> int | None:
    found = [pid for pid in processes_of(str(home)) if b"holdfast: mcp\0" in content_of(Path(f"/proc/{pid}/cmdline"))]
    return found[0] if found else None


def test_a_worker_that_dies_is_replaced(home: Path) -> None:
    url, key = open_http()
    hello = json.dumps(_HELLO).encode()
    assert post(url, {**key, **_ACCEPT}, hello)[0] == 200
    pid = worker(home)
    assert pid is not None
    with holdfast.connect() as client:
        daemon = client.status()["pid"]
    before = sockets(daemon)
    os.kill(pid, signal.SIGSTOP)  # so that the request is on its way when it dies
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(post, url, {**key, **_ACCEPT}, hello)
        eventually(lambda: len(sockets(daemon) - before) == 2)  # the client's, and that to the worker
        os.kill(pid, signal.SIGKILL)
        status, headers, body = asked.result()
    assert (status, headers["content-type"]) == (503, "application/problem+json")
    assert json.loads(body)["code"] == "unreachable"
    assert post(url, {**key, **_ACCEPT}, hello)[0] == 200
    assert worker(home) != pid


def test_an_event_stream_whose_worker_dies_is_ended_in_order(home: Path, tmp_path: Path) -> None:
    url, key = open_http()
    headers = {**key, **_ACCEPT}
    headers["mcp-session-id"] = post(url, headers, json.dumps(_HELLO).encode())[1]["mcp-session-id"]
    begun = tmp_path / "begun"
    call = {"name": "terminal", "arguments": {"command": f"touch {begun}; sleep 300"}, "_meta": {"progressToken": "p"}}
    asked = {"jsonrpc": "2.0", "id": "seven", "method": "tools/call", "params": call}
    with ThreadPoolExecutor() as pool, events(url, headers) as listening:
        answer = pool.submit(post, url, headers, json.dumps(asked).encode())
        eventually(begun.exists)
        pid = worker(home)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        status, _, body = answer.result()
        assert listening.read().count(b"error") == 0  # nobody asked for an answer there
    assert status == 200 and body.endswith(b"\r\n\r\n")
    last = json.loads(body.split(b"data: ")[-1])
    assert (last["id"], last["error"]["code"]) == ("seven", -32603)
    assert "worker died" in last["error"]["message"]


@contextmanager
def events(url: str, headers: dict[str, str]) -> Iterator[HTTPResponse]:
    """What the server says by itself."""
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=30)
    try:
        connection.request("GET", where.path, headers=headers)
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream")
        yield answer
    finally:
        connection.close()


@given(st.lists(st.sampled_from([b"data: a\r\n\r\n", b": b\n\n", b"data: c\ndata: d\n\n"])), st.data())
def test_events_are_passed_on_whole(sent: list[bytes], data: st.DataObject) -> None:
    text = b"".join(sent)
    begun = b"data: never en"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text + begun)))))
    passed: list[bytes] = []

    async def pieces() -> AsyncIterator[bytes]:
        for begin, end in zip([0, *cuts], [*cuts, len(text + begun)], strict=True):
            yield (text + begun)[begin:end]
        raise Unreachable("it died")

    async def use() -> None:
        async for events in whole_events(pieces()):
            passed.append(events)

    with pytest.raises(Unreachable):
        asyncio.run(use())
    assert b"".join(passed) == text and all(one.endswith(b"\n") for one in passed)


def test_processes_outlive_the_worker_and_the_handle_finds_them(home: Path) -> None:
    async def use() -> None:
        async with http() as host:
            id = await host.background("sleep 300")
            session = host.session
        pid = worker(home)
        assert pid is not None and session is not None
        os.kill(pid, signal.SIGKILL)
        async with http() as host:
            assert (await host.process("poll", session_id=id))["status"] == "not_found"
            assert (await host.process("poll", session_id=id, session=session))["status"] == "running"

    asyncio.run(use())


def test_the_worker_knows_no_secret_and_ends_with_the_daemon(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_TOKEN", "ghp_0123456789abcdefghijklmnopqrstuvwxyz")
    url, key = open_http()
    post(url, {**key, **_ACCEPT}, json.dumps(_HELLO).encode())
    pid = worker(home)
    assert pid is not None
    assert b"CANARY" not in content_of(Path(f"/proc/{pid}/environ"))
    run_cli("daemon", "stop")
    eventually(lambda: not is_alive(pid))


def test_the_host_may_name_the_session(instance: Path) -> None:
    async def use() -> None:
        async with http(headers={"holdfast-session": "chat-7"}) as host:
            id = await host.background("sleep 300")
            with holdfast.connect() as client:
                assert client.inspect(id).session == "chat-7"

    asyncio.run(use())
