"""Whoever starts something, by whatever door, is told by that door; what will not be told is said at once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect as open_socket

import holdfast
from tests.http.asking import Api, events
from tests.support import eventually, run_cli

COMMAND = "echo told; exit 3"
SESSION = "surface"
INBOX = f"/api/v1/sessions/{SESSION}/inbox"


def by_command_line(api: Api) -> tuple[str, Any]:
    started = run_cli("run", "-d", "--session", SESSION, "-c", COMMAND)
    told = run_cli("inbox", "--session", SESSION, "--wait", "10", "--ack", "--json")
    return started.stdout.decode().strip(), json.loads(told.stdout)[0]


def by_python(api: Api) -> tuple[str, Any]:
    with holdfast.connect(SESSION) as client:
        process = client.run(COMMAND)
        (notice,) = client.inbox(wait=10)
        client.ack(notice)
        return process.id, notice.to_json()


def by_iterating(api: Api) -> tuple[str, Any]:
    with holdfast.connect(SESSION) as client:
        process = client.run(COMMAND)
        eventually(client.inbox)
        found = []
        for notice in client.notices(timeout=1):
            found.append(notice.to_json())
        return process.id, found[0]


def by_async_python(api: Api) -> tuple[str, Any]:
    async def work() -> tuple[str, Any]:
        async with asyncio.timeout(30), holdfast.aconnect(SESSION) as client:
            process = await client.run(COMMAND)
            async with client.notices() as notices:
                notice = await anext(notices)
            await client.ack(notice)
            return process.id, notice.to_json()

    return asyncio.run(work())


def by_page(api: Api) -> tuple[str, Any]:
    started = api.start(COMMAND, session=SESSION)
    (notice,) = api.ask("GET", f"{INBOX}?wait=10").value["notifications"]
    api.ask("POST", f"{INBOX}/ack", {"ids": [notice["id"]]})
    return started["id"], notice


def by_server_sent_events(api: Api) -> tuple[str, Any]:
    with api.asking(INBOX, headers={"Accept": "text/event-stream"}) as response:
        started = api.start(COMMAND, session=SESSION)
        notice = next(value for _, kind, value in events(response) if kind == "notification")
    api.ask("POST", f"{INBOX}/ack", {"ids": [notice["id"]]})
    return started["id"], notice


def by_websocket(api: Api) -> tuple[str, Any]:
    url, headers = api.url.replace("http", "ws", 1), {"Authorization": f"Bearer {api.token}"}
    with open_socket(f"{url}{INBOX}", additional_headers=headers) as ws:
        started = api.start(COMMAND, session=SESSION)
        notice = json.loads(ws.recv(timeout=60))
        ws.send(json.dumps({"ack": [notice["id"]]}))
        assert json.loads(ws.recv(timeout=60))["acked"] == [notice["id"]]
    return started["id"], notice


DOORS = [
    *(by_command_line, by_python, by_iterating, by_async_python),
    *(by_page, by_server_sent_events, by_websocket),
]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_only_the_starter_is_notified_and_once(home: Path, door: Callable[[Api], tuple[str, Any]]) -> None:
    with holdfast.connect("somebody-else") as other:
        api = Api(other)
        api.open_tcp()
        process, notice = door(api)
        assert (notice["process"], notice["session"], notice["kind"]) == (process, SESSION, "completion")
        assert (notice["data"]["exit_code"], notice["data"]["output"]) == (3, "told")
        assert notice["text"].startswith("[IMPORTANT: ") and notice["text"].endswith("\n]")
        assert notice["summary"].startswith("echo told; exit 3 failed with exit code 3")
        assert other.inbox(session=SESSION) == []
        assert other.inbox() == []


def test_ends_of_processes_started_inside_go_to_the_same_session(home: Path) -> None:
    """A command of a session that starts another by itself: HOLDFAST_SESSION goes with it."""
    call = f"{sys.executable} -m holdfast"
    with holdfast.connect("outer") as client:
        outer = client.run(f"inner=$({call} run -d -c 'exit 4'); echo $inner; {call} inbox --wait 10 --ack --json")
        client.wait(outer.id)
        inner, told = client.logs(outer.id).text.splitlines()
        assert [(one["process"], one["data"]["exit_code"]) for one in json.loads(told)] == [(inner, 4)]


def test_a_start_says_which_notices_will_not_come(home: Path) -> None:
    with holdfast.connect("a") as client:
        both = client.run("sleep 100", notify="any", watch=["x"])
        assert any("dropped" in note for note in both.notes) and not both.watch
        assert not client.run("sleep 101", notify="never", check_interval=5.0).notes
        often = client.run("sleep 102", check_interval=0.1)
        assert any("at least" in note for note in often.notes)
        reused = client.run("sleep 102", check_interval=9.0, if_running="reuse")
        assert reused.id == often.id and any("not taken over" in note for note in reused.notes)
        plain = client.run("sleep 103", watch=["x"], origin={"chat": "1"})
        same = client.run("sleep 103", watch=["x"], origin={"chat": "1"}, if_running="reuse")
        assert same.id == plain.id and not any("not taken over" in note for note in same.notes)
        assert not plain.notes
