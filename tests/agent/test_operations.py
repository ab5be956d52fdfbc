"""Agents over HTTP, as a page of the dashboard uses them: no access to files of the daemon's machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import holdfast
from holdfast.errors import Denied
from tests.agent.endpoint import Endpoint, Fail, Say, call, texts_of
from tests.agent.stage import Conversation
from tests.dashboard.page import Page, open_page
from tests.http.asking import Reply
from tests.support import eventually, run_cli

AGENTS = "/api/v1/agents"


def agent_path(session: str, what: str) -> str:
    return f"/api/v1/sessions/{quote(session, safe='')}/agent/{what}"


def send(page: Page, session: str, text: str, id: str = "in_1") -> Reply:
    return page.ask("POST", agent_path(session, "messages"), {"id": id, "text": text})


def read(page: Page, session: str, **query: Any) -> Reply:
    words = "&".join(f"{name}={value}" for name, value in query.items())
    return page.ask("GET", f"{agent_path(session, 'log')}?{words}")


def ended(page: Page, session: str, turns: int = 1) -> list[dict[str, Any]]:
    """The entries, once this number of turns has ended."""

    def look() -> list[dict[str, Any]] | None:
        entries: list[dict[str, Any]] = read(page, session).value["entries"]
        return entries if sum(one["kind"] == "end" for one in entries) >= turns else None

    return eventually(look)


def test_a_conversation_without_a_file_or_an_environment(endpoint: Endpoint) -> None:
    endpoint.script(call("terminal", command="echo made"), Say("It is **done**."))
    page, session = open_page(), "team/α b"
    listed = page.ask("GET", AGENTS).value
    assert listed == {"agents": [], "model": "m"}
    assert read(page, session).status == 404
    sent = send(page, session, "make it")
    assert sent.status == 200, sent
    [said] = [one for one in read(page, session).value["entries"] if one["kind"] == "user"]
    assert (said["id"], said["content"]["text"], said["content"]["input"]) == (sent.value["entry"], "make it", "in_1")
    entries = ended(page, session)
    assert [one["content"]["text"] for one in entries if one["kind"] == "assistant"][-1] == "It is **done**."
    [agent] = eventually(lambda: [one for one in page.ask("GET", AGENTS).value["agents"] if one["state"] == "idle"])
    assert agent["session"] == session and agent["model"] == "m" and agent["last_text"] == "It is **done**."
    assert agent["newest"] == entries[-1]["id"] and agent["running"] == 0
    assert run_cli("inspect", agent["process"]).returncode == 0
    again = page.ask("POST", agent_path(session, "start"), {})
    assert again.value == {"started": False}


def test_the_same_message_again_is_one_message(endpoint: Endpoint, talk: Conversation) -> None:
    endpoint.script(Say("once", pause=0.2))
    page = open_page()
    first = send(page, "A", "hello").value["entry"]
    assert send(page, "A", "hello").value["entry"] == first
    with holdfast.connect() as client:  # as after a crash of the daemon between the event and the log
        client.publish("agent.input", {"session": "A", "id": "in_1", "kind": "message", "text": "hello"})
    ended(page, "A")
    assert send(page, "A", "go on", "in_2").value["entry"] > first
    ended(page, "A", 2)
    assert [one.content["text"] for one in talk.of("user")] == ["hello", "go on"]
    assert talk.of("interrupt") == []


def test_a_message_survives_a_daemon_that_is_killed_before_the_agent_has_it(
    endpoint: Endpoint, talk: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DIE_AT", "agent-input-published")
    monkeypatch.setenv("HOLDFAST_DIE_MARK", str(tmp_path / "died"))
    endpoint.always(lambda body: Say("I heard it"))
    assert talk.say("once") == "I heard it"
    assert (tmp_path / "died").exists()
    assert [one.content["text"] for one in talk.of("user")] == ["once"]
    assert len(endpoint.asked) == 1 and texts_of(endpoint.asked[0]) == ["once"]


def test_pages_of_a_log(endpoint: Endpoint, talk: Conversation) -> None:
    endpoint.always(lambda body: Say("yes"))
    page = open_page()
    for turn in range(3):
        send(page, "A", f"turn {turn}", f"in_{turn}")
        ended(page, "A", turn + 1)
    everything = [entry.to_json() for entry in talk.entries]
    assert read(page, "A", limit=1000).value == {"entries": everything, "more": False, "newest": everything[-1]["id"]}
    newest = read(page, "A", limit=4).value
    assert newest["entries"] == everything[-4:] and newest["more"]
    before = read(page, "A", limit=1000, before=newest["entries"][0]["id"]).value
    assert before["entries"] + newest["entries"] == everything and not before["more"]
    behind = read(page, "A", after=everything[2]["id"], limit=2).value
    assert behind["entries"] == everything[3:5] and behind["more"]
    assert read(page, "A", after=everything[-1]["id"]).value["entries"] == []


def test_waiting_for_an_entry(endpoint: Endpoint) -> None:
    endpoint.script(Say("a slow answer", pause=0.1))
    page = open_page()
    entry, kinds = send(page, "A", "hello").value["entry"], []
    while "end" not in kinds:
        found = read(page, "A", after=entry, wait=20).value["entries"]
        assert found, "the wait was over before the turn"
        entry = found[-1]["id"]
        kinds += [one["kind"] for one in found]
    assert kinds == ["assistant", "end"]
    assert read(page, "A", after=entry, wait=0.1).value["entries"] == []
    assert read(page, "nobody-yet", after=0, wait=0.1).value == {"entries": [], "more": False, "newest": 0}


def test_interrupt_settings_and_stop(endpoint: Endpoint, talk: Conversation) -> None:
    endpoint.script(call("terminal", command="sleep 100"))
    page = open_page()
    send(page, "A", "wait")
    eventually(lambda: talk.of("tool_start"))
    assert page.ask("GET", AGENTS).value["agents"][0]["state"] == "working"
    assert page.ask("POST", agent_path("A", "control"), {"action": "interrupt"}).status == 204
    assert ended(page, "A")[-1]["content"]["reason"] == "interrupted"
    assert page.ask("POST", agent_path("A", "settings"), {"model": "other"}).status == 204
    assert talk.of("settings")[-1].content["model"] == "other"
    wrong = page.ask("POST", agent_path("A", "settings"), {"toolset": "none such"})
    assert (wrong.status, wrong.code) == (400, "bad_value") and "no toolset" in wrong.value["detail"]
    assert page.ask("POST", agent_path("A", "control"), {"action": "stop"}).status == 204
    eventually(lambda: page.ask("GET", AGENTS).value["agents"][0]["state"] == "not_running")


def test_a_failure_is_the_state_of_the_session(endpoint: Endpoint) -> None:
    endpoint.script(Fail(404, {"error": {"message": "no such model"}}))
    page = open_page()
    send(page, "A", "hello")
    ended(page, "A")
    [agent] = page.ask("GET", AGENTS).value["agents"]
    assert agent["last_kind"] == "end" and "no such model" in agent["why"]


def test_bad_requests(endpoint: Endpoint) -> None:
    page = open_page()
    good = {"id": "in_1", "text": "hello"}
    wrong: dict[str, list[dict[str, Any]]] = {
        "messages": [
            {},
            {"text": "hello"},
            {**good, "text": " \n\t"},
            {**good, "text": "a\0b"},
            {**good, "text": "\ud800"},
            {**good, "text": 7},
            {**good, "id": "../../etc"},
            {**good, "id": "x" * 65},
            {**good, "id": ""},
            {**good, "cwd": "relative"},
            {**good, "env": {"A=B": "c"}},
            {**good, "more": 1},
        ],
        "control": [{}, {"action": "explode"}],
        "settings": [{}, {"model": ""}, {"model": 1}],
        "start": [{"since": -1}, {"umask": 0o7777}],
    }
    for what, bodies in wrong.items():
        for one in bodies:
            refused = page.ask("POST", agent_path("A", what), one)
            assert (refused.status, refused.code) == (400, "bad_value"), (what, one, refused)
    assert send(page, "A", "x" * 300_000).status in (400, 413)
    assert send(page, "agents", "hello").status == 400  # the session of the agents themselves
    assert send(page, "a\nb", "hello").status == 400
    assert send(page, "s" * 257, "hello").status == 400
    for query in ({"limit": 0}, {"limit": 1001}, {"after": -1}, {"after": 1, "before": 2}, {"wait": "long"}):
        assert read(page, "A", **query).status == 400, query
    for unknown in ("nobody", "../../../etc/passwd", "..%2f", "a/../b", "%00"):
        assert read(page, unknown).status in (400, 404), unknown
    assert page.ask("GET", AGENTS).value["agents"] == []
    assert endpoint.asked == []


def test_a_page_that_can_only_look(endpoint: Endpoint) -> None:
    endpoint.always(lambda body: Say("yes"))
    send(open_page(), "A", "hello")
    page = open_page("--read-only")
    assert [one["session"] for one in page.ask("GET", AGENTS).value["agents"]] == ["A"]
    assert read(page, "A").value["entries"][0]["kind"] == "session"
    assert send(page, "A", "me too", "in_2").status == 403
    for what, body in {"control": {"action": "stop"}, "settings": {"model": "x"}, "start": {}}.items():
        assert page.ask("POST", agent_path("A", what), body).status == 403
    assert all(one["content"].get("input") != "in_2" for one in ended(open_page(), "A"))


def test_a_held_command_does_not_speak_for_the_user(endpoint: Endpoint, talk: Conversation) -> None:
    endpoint.always(lambda body: Say("yes"))
    page = open_page()
    for session in ("A", "B"):
        send(page, session, "hello")
        ended(page, session)
    script = """
import holdfast, json
found = {}
def attempt(name, work):
    try:
        found[name] = work()
    except holdfast.HoldfastError as error:
        found[name] = error.code
with holdfast.connect(session="A") as client:
    for session in "AB":
        attempt(f"send {session}", lambda: client.agent_send(session, "I am the user", id="in_9"))
        attempt(f"settings {session}", lambda: client.agent_settings(session, model="x"))
        attempt(f"stop {session}", lambda: client.agent_control(session, "stop"))
        attempt(f"start {session}", lambda: client.agent_start(session))
        attempt(f"log {session}", lambda: len(client.agent_log(session)["entries"]) > 0)
    attempt("agents", lambda: [one["session"] for one in client.agents()["agents"]])
print(json.dumps(found))
"""
    done = run_cli("run", "--session", "A", "--", sys.executable, "-c", script)
    found = json.loads(done.stdout)
    for session in "AB":
        assert {found.pop(f"{what} {session}") for what in ("send", "settings", "stop", "start")} == {"denied"}
    assert found == {"log A": True, "log B": "not_found", "agents": ["A"]}
    with (
        holdfast.connect(session="B", strict=True) as client,
        pytest.raises(Denied, match="its own session alone"),
    ):
        client.agent_send("A", "I am of another session", id="in_8")
    assert [one.content["text"] for one in talk.of("user")] == ["hello"]


def test_an_agent_goes_on_where_it_worked(endpoint: Endpoint, talk: Conversation, tmp_path: Path) -> None:
    """A page names no directory: the agent of a session starts again in the one of the last."""
    endpoint.always(lambda body: Say("yes"))
    directory = tmp_path / "project"
    directory.mkdir()
    page = open_page()
    body = {"id": "in_1", "text": "hello", "cwd": str(directory)}
    assert page.ask("POST", agent_path("A", "messages"), body).status == 200
    ended(page, "A")
    talk.stop()
    send(page, "A", "again", "in_2")
    ended(page, "A", 2)
    assert {entry.content["cwd"] for entry in talk.of("settings")} == {str(directory)}
