"""An agent that is killed at any instant goes on with a valid conversation, and runs no call twice unsaid."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

import holdfast
from holdfast.agent import conversation
from tests.agent.endpoint import Body, Call, Endpoint, Say, call, fault_of, texts_of
from tests.agent.stage import Conversation
from tests.support import eventually

_POINTS = [
    *("agent-input-logged", "agent-answer-logged", "agent-call-logged", "agent-call-run", "agent-result-logged"),
]


def _counting(marks: Path, name: str) -> str:
    return f"echo run >> {marks}/{name}; sleep 0.2; echo made-{name}"


@pytest.mark.parametrize("point", _POINTS)
def test_killed_at(
    endpoint: Endpoint, talk: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setenv("HOLDFAST_DIE_AT", point)
    monkeypatch.setenv("HOLDFAST_DIE_MARK", str(tmp_path / "died"))
    calls = [Call("terminal", {"command": _counting(tmp_path, name)}) for name in "ab"]
    endpoint.script(Say(calls=calls))
    endpoint.always(lambda body: Say("done"))
    assert talk.say("go") == "done"
    assert (tmp_path / "died").exists()
    assert [entry.content["text"] for entry in talk.of("user")] == ["go"]
    results = {entry.content["call"]: json.loads(entry.content["text"]) for entry in talk.of("tool_result")}
    assert set(results) <= {"call_000001", "call_000002"} and len(talk.of("tool_result")) == len(results)
    for name, result in zip("ab", [results.get("call_000001"), results.get("call_000002")], strict=True):
        runs = (tmp_path / name).read_text().count("run") if (tmp_path / name).exists() else 0
        if result is None or result["reason"] in ("not_run", "not_started"):
            assert runs == 0
        else:
            assert runs == 1
            assert result["status"] == "ended" or "do not run it again" in result["next"]
    assert fault_of(conversation.messages(talk.entries)) is None


def test_a_process_that_still_runs_is_named_and_its_end_is_notified(
    endpoint: Endpoint, talk: Conversation, tmp_path: Path
) -> None:
    endpoint.script(
        call("terminal", command=f"touch {tmp_path}/began; until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    )
    endpoint.always(lambda body: Say("I see"))
    talk.send("go")
    eventually(lambda: (tmp_path / "began").exists())
    talk.kill()
    talk.ended(1)
    [result] = talk.results()
    process = talk.of("tool_start")[0].content["process"]
    assert result["status"] == "interrupted" and f"{process} is still running" in result["note"]
    (tmp_path / "go").touch()
    talk.ended(2)
    assert [entry.content["process"] for entry in talk.of("notice")] == [process]


def test_a_process_that_ended_meanwhile_is_named_with_its_code(
    endpoint: Endpoint, talk: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DIE_AT", "agent-call-run")
    monkeypatch.setenv("HOLDFAST_DIE_MARK", str(tmp_path / "died"))
    endpoint.script(call("terminal", command="exit 9"))
    endpoint.always(lambda body: Say("I see"))
    talk.say("go")
    assert "ended with exit code 9" in talk.results()[0]["note"]


def _kill_at_random(endpoint: Endpoint, talk: Conversation, marks: Path, kills: int) -> None:
    """The model starts one command after the other, in the foreground and in the background, until it is stopped.

    At times the daemon is killed as well.
    """
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    asked = iter(range(10**6))

    def work(body: Body) -> Say:
        first = next(asked)
        background = {"background": True, "notify_on_complete": True}
        names = [f"{first}-{n}" for n in range(chance.randrange(1, 4))]
        calls = [Call("terminal", {"command": f"echo run >> {marks}/{name}", **background}) for name in names[1:]]
        calls.append(Call("terminal", {"command": f"echo run >> {marks}/{names[0]}; sleep 0.0{chance.randrange(9)}"}))
        calls.append(Call("write", {"path": f"{marks}/written-{first}", "content": "x"}))
        return Say("working", calls=calls)

    endpoint.always(work)
    talk.send("begin")
    for number in range(kills):
        before = eventually(talk.pid)
        eventually(lambda: talk.of("assistant"))
        time.sleep(chance.uniform(0.0, 0.6))
        if chance.random() < 0.2:
            talk.send(f"message {number}")
        if chance.random() < 0.15:
            with holdfast.connect() as client:
                os.kill(client.status()["pid"], signal.SIGKILL)
        pid = talk.pid() or before
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        assert fault_of(conversation.messages(talk.entries)) is None
        talk.start()
    endpoint.always(lambda body: Say("done"))
    talk.send("end it")
    eventually(lambda: talk.of("user")[-1].content["text"] == "end it" and talk.entries[-1].kind == "end")


def _check_runs(endpoint: Endpoint, talk: Conversation, marks: Path) -> None:
    assert not endpoint.invalid
    entries = talk.entries
    assert fault_of(conversation.messages(entries)) is None
    answers = Counter(entry.content["call"] for entry in entries if entry.kind == "tool_result")
    assert set(answers.values()) <= {1}
    said = {entry.content["call"]: json.loads(entry.content["text"]) for entry in talk.of("tool_result")}
    calls = {one.id: one for entry in talk.of("assistant") for one in conversation.calls_of(entry)}
    assert set(said) == set(calls)
    for chosen, one in calls.items():
        if one.name != "terminal":
            continue
        path = json.loads(one.arguments)["command"].split(">> ")[1].split(";")[0]
        runs = Path(path).read_text().count("run") if os.path.exists(path) else 0
        reason = said[chosen]["reason"]
        assert runs <= 1, (path, runs)
        if reason in ("not_run", "skipped"):
            assert runs == 0, (path, reason)
        elif reason not in ("not_started", "interrupted"):
            assert runs == 1, (path, reason)
    notices = Counter(entry.content["key"] for entry in talk.of("notice"))
    assert set(notices.values()) <= {1}
    inputs = [entry.content["input"] for entry in talk.of("user")]
    assert len(inputs) == len(set(inputs))
    for body in endpoint.asked:
        assert len([text for text in texts_of(body) if text == "begin"]) == 1


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_at_20_random_instants(endpoint: Endpoint, talk: Conversation, tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    _kill_at_random(endpoint, talk, tmp_path / "marks", 20)
    _check_runs(endpoint, talk, tmp_path / "marks")


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_killed_at_200_random_instants(endpoint: Endpoint, talk: Conversation, tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    _kill_at_random(endpoint, talk, tmp_path / "marks", 200)
    _check_runs(endpoint, talk, tmp_path / "marks")
