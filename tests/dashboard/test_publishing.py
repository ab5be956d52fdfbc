"""Programs of others publish to the dashboard: with a token that can do nothing else, also in the URL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

import holdfast
from holdfast.events import Bus, bridge
from tests.dashboard.page import Page, open_page, send
from tests.support import eventually, run_cli

FRAME = {"jsonrpc": "2.0", "method": "event", "params": {"type": "tool.start", "session_id": "s", "payload": {"n": 1}}}


@pytest.fixture(scope="module")
def page(instance: Path) -> Page:
    return open_page()


@pytest.fixture(scope="module")
def token(page: Page) -> str:
    printed = run_cli("dashboard", "--print-token")
    assert printed.returncode == 0, printed
    given = dict(line.split("=", 1) for line in printed.stdout.decode().splitlines())
    assert given["HOLDFAST_BUS_URL"] == page.url
    assert set(given) == {"HOLDFAST_BUS_URL", "HOLDFAST_BUS_TOKEN"}
    return given["HOLDFAST_BUS_TOKEN"]


def pub(page: Page, query: str, **options: Any) -> ClientConnection:
    opened: ClientConnection = connect(f"ws://{page.host}/api/pub{query}", **options)
    return opened


def published(topic: str) -> list[dict[str, Any]]:
    with holdfast.connect() as client, client.events(topic) as events:
        return list(events)


def test_a_program_that_knows_only_a_url_publishes(page: Page, token: str) -> None:
    with pub(page, f"?token={token}&channel=chat-1") as ws:
        ws.send(json.dumps(FRAME))
        found = eventually(lambda: published("tui.tool.start"))
    assert (found[0]["session_id"], found[0]["n"]) == ("s", 1)


def test_a_page_gets_the_texts_of_one_channel(page: Page, token: str) -> None:
    with (
        page.socket("/api/events?channel=a") as reader,
        page.socket("/api/events?channel=b") as other,
        pub(page, f"?token={token}&channel=b") as second,
        pub(page, f"?token={token}&channel=a") as first,
    ):
        second.send('{"for": "b"}')
        first.send(json.dumps(FRAME))
        assert json.loads(reader.recv(timeout=60)) == FRAME
        assert other.recv(timeout=60) == '{"for": "b"}'
    for query in ("", "?channel=", "?channel=a/b", "?channel=" + "x" * 200, "?channel=%0d%0a"):
        with pytest.raises(InvalidStatus) as refused:
            page.socket(f"/api/events{query}")
        assert refused.value.response.status_code == 400, query


def test_that_token_can_do_nothing_else(page: Page, token: str) -> None:
    proofs = ({"Authorization": f"Bearer {token}"}, {"Holdfast-Secret": token})
    for method, path in (
        ("GET", "/api/v1/processes"),
        ("GET", f"/api/v1/processes?token={token}"),
        ("GET", "/api/v1/dashboard/session"),
        ("POST", "/api/v1/events"),
        ("GET", "/metrics"),
        ("POST", f"/api/v1/kill?token={token}"),
    ):
        for proof in proofs:
            assert send(page.host, method, path, {} if method == "POST" else None, proof).status == 401, path
    for path in ("/api/v1/events", "/api/events?channel=a", f"/api/events?channel=a&token={token}"):
        with pytest.raises(InvalidStatus) as refused:
            connect(f"ws://{page.host}{path}", additional_headers={"Authorization": f"Bearer {token}"})
        assert refused.value.response.status_code == 401, path


def test_who_may_not_publish(page: Page, token: str) -> None:
    for query, options, status in (
        ("", {}, 401),
        ("?token=wrong", {}, 401),
        ("?token=", {}, 401),
        (f"?token={page.secret}", {}, 401),
        (f"?token={token}", {"origin": "http://evil.example"}, 403),
        (f"?token={token}", {"additional_headers": {"Sec-Fetch-Site": "cross-site"}}, 403),
        (f"?token={token}&more=1", {}, 400),
        (f"?token={token}&channel=a%00b", {}, 400),
    ):
        given: dict[str, Any] = options
        with pytest.raises(InvalidStatus) as refused:
            pub(page, query, **given)
        assert refused.value.response.status_code == status, query
    assert send(page.host, "GET", f"/api/pub?token={token}").status == 426


def test_the_token_is_in_no_log(instance: Path, page: Page, token: str) -> None:
    with pub(page, f"?token={token}"):
        pass
    send(page.host, "GET", f"/nowhere?token={token}")
    assert token not in (instance / "daemon.log").read_text()


def test_a_bridge_publishes_with_what_was_printed(page: Page, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_BUS_URL", page.url)
    monkeypatch.setenv("HOLDFAST_BUS_TOKEN", token)
    bus = Bus()
    joined = bridge.start_from_environment(bus)
    assert joined is not None
    try:
        bus.publish("deploy.done", {"version": "7"})
        assert joined.flush(10)
    finally:
        joined.stop()
    assert [event["version"] for event in published("deploy.done")] == ["7"]


def test_a_rotated_token_is_of_no_more_use(home: Path) -> None:
    before = run_cli("dashboard", "--print-token", "--json")
    reply = json.loads(before.stdout)
    assert run_cli("daemon", "http", "--rotate").returncode == 0
    with pytest.raises(InvalidStatus):
        connect(f"ws://{reply['url'].removeprefix('http://')}/api/pub?token={reply['token']}")
