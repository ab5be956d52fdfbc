"""A new message interrupts: what runs in the foreground ends at once, the background goes on, the order stays valid."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import holdfast
from tests.agent.endpoint import Call, Endpoint, Say, call, texts_of
from tests.agent.stage import Conversation
from tests.support import eventually


def _runs(path: Path) -> int:
    eventually(lambda: path.exists() and path.read_text().strip())
    return int(path.read_text())


def test_a_message_ends_the_foreground_command_and_skips_the_rest(
    endpoint: Endpoint, talk: Conversation, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    calls = [
        Call("terminal", {"command": f"echo $$ > {pid}; sleep 1000"}),
        Call("process", {"action": "wait", "session_id": "nothing"}),
        Call("write", {"path": str(tmp_path / "never"), "content": "x"}),
        Call("terminal", {"command": f"touch {tmp_path}/never-too"}),
    ]
    endpoint.script(call("terminal", command="sleep 1001", background=True), Say(calls=calls), Say("as you wish"))
    talk.send("work")
    command = _runs(pid)
    begun = time.monotonic()
    talk.send("stop that")
    eventually(lambda: not Path(f"/proc/{command}").exists())
    taken = time.monotonic() - begun
    talk.ended(1)
    assert taken < 8.0, "not the grace of 10 s"
    by_call = {entry.content["call"]: json.loads(entry.content["text"]) for entry in talk.of("tool_result")}
    assert by_call["call_000002"]["status"] == "interrupted"
    assert by_call["call_000004"]["reason"] == by_call["call_000005"]["reason"] == "skipped"
    assert not (tmp_path / "never").exists() and not (tmp_path / "never-too").exists()
    with holdfast.connect(session="A") as client:
        assert [one.command for one in client.ps(session="A")] == ["sleep 1001"]
    assert texts_of(endpoint.asked[-1])[-1] == "stop that"
    assert talk.of("assistant")[-1].content["text"] == "as you wish"


def test_a_message_ends_a_wait(endpoint: Endpoint, talk: Conversation) -> None:
    endpoint.script(
        call("terminal", command="sleep 1000", background=True),
        lambda body: call("process", action="wait", session_id=json.loads(texts_of(body)[-1])["session_id"]),
        Say("ok"),
    )
    talk.send("wait")
    eventually(lambda: len(talk.of("tool_start")) == 2)
    talk.send("never mind")
    talk.ended(1)
    assert talk.results()[1]["status"] == "interrupted"


def test_a_message_ends_an_answer_that_is_streamed(endpoint: Endpoint, talk: Conversation) -> None:
    story = "a very long story " * 20
    endpoint.script(Say(story, pause=3.0), Say("short"))
    talk.send("tell me a story")
    eventually(lambda: len(endpoint.asked) == 1)
    talk.send("be brief")
    eventually(lambda: len(endpoint.asked) == 2)
    talk.ended(1)
    assert not any(str(said.content["text"]).strip() == story.strip() for said in talk.of("assistant"))
    assert talk.of("assistant")[-1].content["text"] == "short"
    assert texts_of(endpoint.asked[-1])[-1] == "be brief"


def test_an_interrupt_without_a_message_ends_the_turn(endpoint: Endpoint, talk: Conversation, tmp_path: Path) -> None:
    endpoint.script(call("terminal", command=f"echo $$ > {tmp_path}/pid; sleep 1000"), Say("again"))
    talk.send("work")
    _runs(tmp_path / "pid")
    talk.interrupt()
    entries = talk.ended(1)
    assert entries[-1].content["reason"] == "interrupted"
    assert len(endpoint.asked) == 1
    assert talk.say("go on") == "again"


@pytest.mark.parametrize("text", ["", "   \n"])
def test_an_empty_message_is_none(endpoint: Endpoint, talk: Conversation, text: str) -> None:
    from holdfast.errors import BadValue

    with pytest.raises(BadValue):
        talk.send(text)
