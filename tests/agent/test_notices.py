"""Notices: each enters the conversation of its own session, once, between two steps; it wakes an idle agent."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import holdfast
from tests.agent.endpoint import Body, Call, Endpoint, Say, call, texts_of
from tests.agent.stage import Conversation
from tests.support import eventually, never

_MARK = "[IMPORTANT: Background process"


def _job(go: Path, code: int = 0) -> Say:
    command = f"until [ -e {go} ]; do sleep 0.05; done; echo from-the-job; exit {code}"
    return call("terminal", command=command, background=True, notify_on_complete=True)


def _notices(body: Body) -> list[str]:
    return [text for text in texts_of(body) if text.startswith(_MARK)]


def test_the_end_of_a_process_of_a_reaches_a_alone_and_once(home: Path, endpoint: Endpoint, tmp_path: Path) -> None:
    a, b = Conversation(home, "A"), Conversation(home, "B")
    b.set(model="b")
    endpoint.script(_job(tmp_path / "go", 7), Say("started"), Say("it failed"))
    endpoint.script(Say("nothing to do"), Say("still nothing"), model="b")
    assert a.say("start it") == "started"
    assert b.say("hello") == "nothing to do"
    (tmp_path / "go").touch()
    a.ended(2)
    [notice] = a.of("notice")
    assert "exit code 7" in notice.content["text"] and "from-the-job" in notice.content["text"]
    assert notice.content["process"] == a.results()[0]["session_id"]
    assert b.say("and now?") == "still nothing"
    assert not b.of("notice")
    assert [len(_notices(body)) for body in endpoint.asked_of("m")] == [0, 0, 1]
    assert not any(_notices(body) for body in endpoint.asked_of("b"))
    assert endpoint.asked_of("m")[-1]["messages"][-1]["role"] == "user"
    with holdfast.connect(session="A") as client:
        assert client.inbox() == []
    never(lambda: len(a.of("notice")) > 1 or len(endpoint.asked_of("m")) > 3, within=1.0)


def test_a_notice_never_stands_between_a_call_and_its_answer(
    endpoint: Endpoint, talk: Conversation, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    wait = f"touch {go}; for n in $(seq 200); do [ -e {tmp_path}/seen ] && break; sleep 0.05; done; sleep 0.3"
    endpoint.script(
        _job(go),
        Say(calls=[Call("terminal", {"command": wait}), Call("terminal", {"command": "sleep 1"})]),
        Say("all done"),
    )
    talk.send("go")
    eventually(lambda: go.exists())
    with holdfast.connect(session="A") as client:
        eventually(lambda: client.inbox())
    (tmp_path / "seen").touch()
    entries = talk.ended(1)
    kinds = [entry.kind for entry in entries]
    assert kinds.index("notice") > max(at for at, kind in enumerate(kinds) if kind == "tool_result")
    assert len(talk.of("notice")) == 1


def test_what_a_call_returned_is_not_notified_as_well(endpoint: Endpoint, talk: Conversation, tmp_path: Path) -> None:
    endpoint.script(
        _job(tmp_path / "go"),
        lambda body: call("process", action="wait", session_id=json.loads(texts_of(body)[-1])["session_id"]),
        Say("waited for it"),
    )
    talk.send("wait for it")
    eventually(lambda: len(talk.of("tool_start")) == 2)
    (tmp_path / "go").touch()
    talk.ended(1)
    assert talk.of("assistant")[-1].content["text"] == "waited for it"
    never(lambda: talk.of("notice"), within=1.0)


@pytest.mark.parametrize("killed", ["agent", "daemon"])
def test_a_notice_comes_once_although_a_part_was_killed_meanwhile(
    endpoint: Endpoint, talk: Conversation, tmp_path: Path, killed: str
) -> None:
    endpoint.script(_job(tmp_path / "go"), Say("started"))
    endpoint.always(lambda body: Say("I see"))
    talk.say("start it")
    if killed == "agent":
        before = talk.kill()
        eventually(lambda: talk.pid() not in (None, before))
    else:
        with holdfast.connect() as client:
            os.kill(client.status()["pid"], signal.SIGKILL)
    (tmp_path / "go").touch()
    talk.ended(2)
    never(lambda: len(talk.of("notice")) != 1, within=1.5)
    assert [len(_notices(body)) for body in endpoint.asked] == [0, 0, 1]


def test_an_agent_that_died_between_log_and_acknowledgement_does_not_see_it_twice(
    endpoint: Endpoint, talk: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DIE_AT", "agent-notice-logged")
    monkeypatch.setenv("HOLDFAST_DIE_MARK", str(tmp_path / "died"))
    endpoint.script(_job(tmp_path / "go"), Say("started"))
    endpoint.always(lambda body: Say("I see"))
    talk.say("start it")
    (tmp_path / "go").touch()
    talk.ended(2)
    assert (tmp_path / "died").exists()
    with holdfast.connect(session="A") as client:
        eventually(lambda: client.inbox() == [])
    assert len(talk.of("notice")) == 1
    assert all(len(_notices(body)) <= 1 for body in endpoint.asked)
