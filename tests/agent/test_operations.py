"""Agents over HTTP, as a page of the dashboard uses them: no access to files of the daemon's machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import holdfast
from holdfast.errors import Denied
from holdfast.session_log import LogEntry, SessionLog
from tests.agent.endpoint import Endpoint, Fail, Say, call, texts_of
from tests.agent.stage import Conversation, configure
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


def state_of(page: Page, session: str) -> dict[str, Any]:
    [found] = [one for one in page.ask("GET", AGENTS).value["agents"] if one["session"] == session]
    return dict(found)


def written(home: Path, session: str, turns: int) -> list[LogEntry]:
    """The log of a conversation that is over."""
    with SessionLog(str(home), session) as log:
        for turn in range(turns):
            log.append("user", text=f"question {turn}", input=f"in_{session}_{turn}")
            log.append("assistant", text=f"answer {turn}", calls=[])
            log.append("end", reason="done")
        return list(log.entries)


@pytest.fixture(scope="module")
def endpoint_here(instance: Path) -> Iterator[Endpoint]:
    """Of the instance that the tests share."""
    with Endpoint() as endpoint:
        configure(instance, endpoint)
        yield endpoint


@pytest.fixture(scope="module")
def page(instance: Path, endpoint_here: Endpoint) -> Page:
    return open_page()


def test_a_conversation_without_a_file_or_an_environment(endpoint_here: Endpoint, page: Page) -> None:
    endpoint_here.script(call("terminal", command="echo made"), Say("It is **done**.", pause=0.05))
    session = "team/α b"
    assert page.ask("GET", AGENTS).value["model"] == "m"
    assert read(page, session).status == 404
    sent = send(page, session, "make it")
    assert sent.status == 200, sent
    [said] = [one for one in read(page, session).value["entries"] if one["kind"] == "user"]
    assert (said["id"], said["content"]["text"], said["content"]["input"]) == (sent.value["entry"], "make it", "in_1")
    entry, kinds = said["id"], []
    while "end" not in kinds:  # as a long poll
        found = read(page, session, after=entry, wait=20).value["entries"]
        assert found, "the wait was over before the turn"
        entry = found[-1]["id"]
        kinds += [one["kind"] for one in found]
    assert kinds == ["assistant", "tool_start", "tool_result", "assistant", "end"]
    assert read(page, session, after=entry, wait=0.1).value["entries"] == []
    agent = state_of(page, session)
    assert agent["state"] == "idle" and agent["model"] == "m" and agent["last_text"] == "It is **done**."
    assert agent["newest"] == entry and agent["running"] == 0
    assert run_cli("inspect", agent["process"]).returncode == 0
    assert page.ask("POST", agent_path(session, "start"), {}).value == {"started": False}


def test_the_same_message_again_is_one_message(endpoint_here: Endpoint, page: Page, instance: Path) -> None:
    endpoint_here.script(Say("once", pause=0.2))
    first = send(page, "twice", "hello").value["entry"]
    assert send(page, "twice", "hello").value["entry"] == first
    with holdfast.connect() as client:  # as after a crash of the daemon between the event and the log
        client.publish("agent.input", {"session": "twice", "id": "in_1", "kind": "message", "text": "hello"})
    ended(page, "twice")
    assert send(page, "twice", "go on", "in_2").value["entry"] > first
    ended(page, "twice", 2)
    talk = Conversation(instance, "twice")
    assert [one.content["text"] for one in talk.of("user")] == ["hello", "go on"]
    assert talk.of("interrupt") == []


def test_interrupt_settings_failure_and_stop(
    endpoint_here: Endpoint, page: Page, instance: Path, tmp_path: Path
) -> None:
    endpoint_here.script(call("terminal", command="sleep 100"))
    endpoint_here.script(Fail(404, {"error": {"message": "no such model"}}), model="other")
    talk = Conversation(instance, "A")
    body = {"id": "in_1", "text": "wait", "cwd": str(tmp_path)}
    assert page.ask("POST", agent_path("A", "messages"), body).status == 200
    eventually(lambda: talk.of("tool_start"))
    assert state_of(page, "A")["state"] == "working"
    assert page.ask("POST", agent_path("A", "control"), {"action": "interrupt"}).status == 204
    assert ended(page, "A")[-1]["content"]["reason"] == "interrupted"
    assert page.ask("POST", agent_path("A", "settings"), {"model": "other"}).status == 204
    assert talk.of("settings")[-1].content["model"] == "other"
    wrong = page.ask("POST", agent_path("A", "settings"), {"toolset": "none such"})
    assert (wrong.status, wrong.code) == (400, "bad_value") and "no toolset" in wrong.value["detail"]
    send(page, "A", "hello", "in_2")
    ended(page, "A", 2)
    agent = state_of(page, "A")
    assert agent["last_kind"] == "end" and "no such model" in agent["why"]
    assert page.ask("POST", agent_path("A", "control"), {"action": "stop"}).status == 204
    eventually(lambda: state_of(page, "A")["state"] == "not_running")
    # The page names no directory: the next agent of the session works where the last one did.
    send(page, "A", "again", "in_3")
    assert {entry.content["cwd"] for entry in talk.of("settings")} == {str(tmp_path)}


def test_pages_of_a_log(page: Page, instance: Path) -> None:
    everything = [entry.to_json() for entry in written(instance, "pages", 30)]
    assert read(page, "pages", limit=99).value == {"entries": everything, "more": False, "newest": everything[-1]["id"]}
    newest = read(page, "pages", limit=4).value
    assert newest["entries"] == everything[-4:] and newest["more"]
    before = read(page, "pages", limit=1000, before=newest["entries"][0]["id"]).value
    assert before["entries"] + newest["entries"] == everything and not before["more"]
    behind = read(page, "pages", after=everything[2]["id"], limit=2).value
    assert behind["entries"] == everything[3:5] and behind["more"]
    assert read(page, "pages", after=everything[-1]["id"]).value["entries"] == []
    assert read(page, "none-yet", after=0, wait=0.1).value == {"entries": [], "more": False, "newest": 0}


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


def test_bad_requests(page: Page, endpoint_here: Endpoint) -> None:
    before = len(endpoint_here.asked), page.ask("GET", AGENTS).value["agents"]
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
            refused = page.ask("POST", agent_path("bad", what), one)
            assert (refused.status, refused.code) == (400, "bad_value"), (what, one, refused)
    assert send(page, "bad", "x" * 300_000).status in (400, 413)
    assert send(page, "agents", "hello").status == 400  # the session of the agents themselves
    assert send(page, "a\nb", "hello").status == 400
    assert send(page, "s" * 257, "hello").status == 400
    for query in ({"limit": 0}, {"limit": 1001}, {"after": -1}, {"after": 1, "before": 2}, {"wait": "long"}):
        assert read(page, "bad", **query).status == 400, query
    for unknown in ("unknown", "../../../etc/passwd", "..%2f", "a/../b", "%00"):
        assert read(page, unknown).status in (400, 404), unknown
    assert (len(endpoint_here.asked), page.ask("GET", AGENTS).value["agents"]) == before


def test_a_page_that_can_only_look(page: Page, instance: Path) -> None:
    before = written(instance, "seen", 1)
    only = open_page("--read-only")
    assert state_of(only, "seen")["last_text"] == "answer 0"
    assert read(only, "seen").value["entries"][0]["kind"] == "session"
    assert send(only, "seen", "me too", "in_2").status == 403
    for what, body in {"control": {"action": "stop"}, "settings": {"model": "x"}, "start": {}}.items():
        assert only.ask("POST", agent_path("seen", what), body).status == 403
    assert Conversation(instance, "seen").entries == before


def test_a_held_command_does_not_speak_for_the_user(page: Page, instance: Path) -> None:
    before = [written(instance, session, 1) for session in ("own", "other")]
    script = """
import holdfast, json
found = {}
def attempt(name, work):
    try:
        found[name] = work()
    except holdfast.HoldfastError as error:
        found[name] = error.code
with holdfast.connect(session="own") as client:
    for session in ("own", "other"):
        attempt(f"send {session}", lambda: client.agent_send(session, "I am the user", id="in_9"))
        attempt(f"settings {session}", lambda: client.agent_settings(session, model="x"))
        attempt(f"stop {session}", lambda: client.agent_control(session, "stop"))
        attempt(f"start {session}", lambda: client.agent_start(session))
        attempt(f"log {session}", lambda: len(client.agent_log(session)["entries"]) > 0)
    attempt("agents", lambda: [one["session"] for one in client.agents()["agents"]])
print(json.dumps(found))
"""
    done = run_cli("run", "--session", "own", "--", sys.executable, "-c", script)
    found = json.loads(done.stdout)
    for session in ("own", "other"):
        assert {found.pop(f"{what} {session}") for what in ("send", "settings", "stop", "start")} == {"denied"}
    assert found == {"log own": True, "log other": "not_found", "agents": ["own"]}
    with (
        holdfast.connect(session="own", strict=True) as client,
        pytest.raises(Denied, match="its own session alone"),
    ):
        client.agent_send("other", "I am of another session", id="in_8")
    assert [Conversation(instance, session).entries for session in ("own", "other")] == before
