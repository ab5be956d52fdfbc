"""Sessions whose agent is another program: prompts, reports, questions, notices, crashes."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.agent import conversation
from tests.agent.endpoint import fault_of
from tests.agent.stage import Conversation
from tests.cli.calling import out, refusal
from tests.support import eventually, never, run_cli

_PROGRAM = str(Path(__file__).with_name("acp_program.py"))


class ProgramNotes:
    """The directory of a program, and what it noted there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.command = f"{sys.executable} {_PROGRAM} {directory}"

    def _rows(self, name: str) -> list[dict[str, Any]]:
        path = self.directory / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def prompts(self) -> list[str]:
        return [row["text"] for row in self._rows("prompts")]

    @property
    def opened(self) -> list[dict[str, Any]]:
        return self._rows("opened")

    @property
    def terminals(self) -> list[str]:
        return [row["id"] for row in self._rows("terminals")]

    @property
    def permissions(self) -> list[str]:
        return [row["chosen"] for row in self._rows("permissions")]


@pytest.fixture
def notes(home: Path, tmp_path: Path) -> ProgramNotes:
    home.mkdir(exist_ok=True, mode=0o700)
    return ProgramNotes(tmp_path / "program")


@pytest.fixture
def talk(home: Path, notes: ProgramNotes) -> Conversation:
    return Conversation(home, "A", notes.command)


def _kinds(talk: Conversation) -> list[str]:
    return [entry.kind for entry in talk.entries if entry.kind != "settings"]


def test_a_turn_is_logged_as_that_of_a_model(talk: Conversation, notes: ProgramNotes) -> None:
    assert talk.say("think\nsay first\ncall make test") == "read 3 lines"
    assert _kinds(talk) == [
        "session",
        "user",
        *("assistant", "tool_start", "tool_start", "tool_result"),
        "assistant",
        "end",
    ]
    [call] = [call for entry in talk.of("assistant") for call in conversation.calls_of(entry)]
    assert talk.of("assistant")[0].content["text"] == "first"
    assert talk.of("tool_start")[-1].content["title"] == "make test"
    assert talk.of("tool_result")[0].content["text"] == "result of make test"
    assert call.name == "execute" and talk.of("end")[0].content["reason"] == "done"
    assert fault_of(conversation.messages(talk.entries)) is None
    assert notes.opened[0]["env"] == "A"
    assert talk.say("again") == "read 1 lines"
    assert len(notes.opened) == 1, "one session of the program for one of ours"


def test_what_it_starts_belongs_to_the_session_and_its_end_is_prompted_there_alone(
    home: Path, talk: Conversation, notes: ProgramNotes, tmp_path: Path
) -> None:
    other_notes = ProgramNotes(tmp_path / "other")
    other = Conversation(home, "B", other_notes.command)
    go = tmp_path / "go"
    job = f"until [ -e {go} ]; do sleep 0.05; done; exit 7"
    talk.say(f"mcp {job}\nshell {sys.executable} -m holdfast run -d --name by-shell -- sleep 1000")
    other.say("hello")
    with holdfast.connect() as client:
        assert {one.command.split()[0] for one in client.ps(session="A")} == {"until", "sleep"}
        assert client.ps(session="B") == []
    go.touch()
    talk.ended(2)
    [notice] = talk.of("notice")
    assert "exit code 7" in notice.content["text"]
    assert [text for text in notes.prompts if "exit code 7" in text] == [notice.content["text"]]
    never(lambda: len(talk.of("notice")) != 1 or other.of("notice"), within=0.7)
    assert not any("exit code 7" in text for text in other_notes.prompts)
    with holdfast.connect(session="A") as client:
        assert client.inbox() == []


def test_an_interrupt_cancels_and_a_message_goes_on(talk: Conversation, notes: ProgramNotes, tmp_path: Path) -> None:
    talk.send(f"say begin\nwait {tmp_path}/never")
    eventually(lambda: (tmp_path / "never.began").exists())
    talk.interrupt()
    talk.ended(1, timeout=30)
    assert _kinds(talk)[-3:] == ["tool_result", "interrupt", "end"]
    assert talk.of("end")[0].content["reason"] == "interrupted"
    (tmp_path / "never.began").unlink()
    talk.send(f"wait {tmp_path}/never")
    eventually(lambda: (tmp_path / "never.began").exists())
    talk.send("say instead")
    talk.ended(2)
    assert [entry.content["text"] for entry in talk.of("assistant")][-1] == "insteadread 1 lines"
    assert len(notes.opened) == 1


@pytest.mark.parametrize(("answer", "chosen"), [("once", "y"), ("session", "y"), ("deny", "n"), (None, "n")])
def test_a_question_of_the_program_is_an_approval(
    talk: Conversation, notes: ProgramNotes, answer: str | None, chosen: str
) -> None:
    def decide() -> None:
        with holdfast.connect() as client, client.follow_approvals() as requests:
            for request in requests:
                if request.state != "pending":
                    continue
                client.approval_shown(request)
                assert (request.command, request.session, request.action) == ("make install", "A", "tool")
                client.deny(request) if answer == "deny" else client.approve(request, str(answer))
                return

    deciding = threading.Thread(target=decide)
    if answer is not None:
        deciding.start()
    assert f"chosen {chosen}" in talk.say("ask make install")
    if answer is not None:
        deciding.join()
    if answer == "session":
        talk.say("ask make install")  # no approver is needed again
    assert notes.permissions == [chosen] * (2 if answer == "session" else 1)


@pytest.mark.full
def test_terminals_and_files_are_served_by_holdfast(talk: Conversation, notes: ProgramNotes, tmp_path: Path) -> None:
    said = talk.say(f"write {tmp_path}/made some text\nrun cat {tmp_path}/made\nread {tmp_path}/made")
    assert "printed some text" in said and "content some text" in said
    with holdfast.connect() as client:
        [terminal] = client.ps(session="A", all=True)
    assert terminal.id in said
    assert "refused" in talk.say(f"read {tmp_path}/missing")


def test_terminals_of_a_killed_agent_are_ended_and_nothing_else_of_the_session(
    talk: Conversation, notes: ProgramNotes, tmp_path: Path
) -> None:
    with holdfast.connect(session="A") as client:
        other = client.run("sleep 1000").id
        talk.send(f"open sleep 1000\nwait {tmp_path}/go")
        eventually(lambda: (tmp_path / "go.began").exists())
        [terminal] = notes.terminals
        assert client.inspect(terminal).status == "running"
        talk.kill()
        ended = client.wait(terminal)
        assert (ended.status, ended.reason) == ("ended", "killed")
        (tmp_path / "go").touch()
        talk.ended(1)
        assert "Terminals that you had open were ended" in notes.prompts[-1]
        assert client.inspect(other).status == "running"
        again = notes.terminals[-1]
        assert again != terminal
        assert client.inspect(again).status == "running", "the terminals of the present agent go on"


def test_a_plan_is_logged_as_a_call_that_is_over(talk: Conversation, notes: ProgramNotes) -> None:
    steps = "read=completed,write=in_progress,test=pending"
    talk.say(f"say before\nplan {steps}\nplan {steps}\nsay after\nplan read=completed,write=completed,test=completed")
    results = [entry.content for entry in talk.of("tool_result")]
    assert [one["name"] for one in results] == ["plan", "plan"], "a plan that did not change is not logged again"
    assert [one["text"] for one in results] == ["✓ read\n● write\n○ test", "✓ read\n✓ write\n✓ test"]
    assert [entry.content["text"] for entry in talk.of("assistant")][:2] == ["before", "after"]
    assert fault_of(conversation.messages(talk.entries)) is None


@pytest.mark.parametrize("can_load", [True, False])
def test_a_killed_agent_goes_on_with_the_session_or_says_that_it_could_not(
    talk: Conversation, notes: ProgramNotes, tmp_path: Path, can_load: bool
) -> None:
    if can_load:
        (notes.directory / "load").touch()
    talk.say("say remember this")
    talk.send(f"say begin\nwait {tmp_path}/go")
    eventually(lambda: (tmp_path / "go.began").exists())
    eventually(lambda: talk.of("tool_start"))
    talk.kill()
    (tmp_path / "go").touch()
    eventually(lambda: not os.path.exists(f"/proc/{notes.opened[0]['pid']}"))
    talk.ended(2)
    how = [row["how"] for row in notes.opened]
    assert how == (["new", "load"] if can_load else ["new", "new"])
    assert notes.prompts[-1].count("[The system restarted you") == (1 if can_load else 2)
    assert f"wait {tmp_path}/go" in notes.prompts[-1]
    if can_load:
        assert notes.opened[0]["session"] == notes.opened[1]["session"]
        assert not talk.of("compaction")
    else:
        [compaction] = talk.of("compaction")
        assert "could not load" in compaction.content["why"]
        assert "User: say remember this" in notes.prompts[-1]
    assert "an old answer" not in json.dumps([entry.content for entry in talk.entries]), "history is not logged again"
    assert fault_of(conversation.messages(talk.entries)) is None
    result = talk.of("tool_result")[0]
    assert "whether it took effect is unknown" in result.content["text"]


@pytest.mark.full
def test_a_program_that_dies_is_one_sentence_and_the_next_message_starts_it_again(
    talk: Conversation, notes: ProgramNotes
) -> None:
    talk.send("say before\ndie")
    talk.ended(1)
    [error] = talk.of("error")
    assert "ended with exit code 3: out of luck" in error.content["message"] and error.content["next"]
    assert talk.say("say back").startswith("back")
    assert len(notes.opened) == 2


def test_a_login_that_is_needed_is_said_with_the_next_step(talk: Conversation, notes: ProgramNotes) -> None:
    (notes.directory / "login").touch()
    done = run_cli("agent", "--session", "A", "--acp", notes.command, "hello")
    assert done.returncode == 125
    assert "needs a login" in done.stderr.decode() and "Run `program login` first" in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    (notes.directory / "login").unlink()
    assert out("agent", "--session", "A", "--quiet", "say well").startswith("well")
    assert notes.prompts == ["hello\n\nsay well"], "what was not sent before is sent now"


def test_a_configured_program_by_its_name(
    home: Path, notes: ProgramNotes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = json.dumps(notes.command.split())
    (home / "agent").mkdir(mode=0o700)
    config = home / "agent/config.toml"
    config.write_text(f'[acp.mine]\ncommand = {words}\nenv = {{HOLDFAST_TEST_MARK = "here"}}\n')
    shown = out("agent", "--session", "A", "--acp", "mine", "--quiet", "shell echo $HOLDFAST_TEST_MARK > mark")
    assert shown == "read 1 lines\n"
    assert Path("mark").read_text() == "here\n"
    assert "another agent" in refusal("agent", "--session", "A", "--acp", "codex", "hello")
    assert "of its own" in refusal("agent", "--acp", "mine", "--model", "m", "hello")
    assert "no agent program" in refusal("agent", "--acp", "no-such-program --x", "hello")
    assert "no command" in refusal("agent", "--acp", "'unclosed", "hello")
    config.write_text("[acp.mine]\nurl = 'x'\n")
    assert "needs a command" in refusal("agent", "--session", "A", "hello")


def test_hostile_messages_of_a_program_end_nothing(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "hostile.py"
    script.write_text(
        "import json, sys\n"
        "def send(m): print(json.dumps(m), flush=True)\n"
        "print('not json', flush=True); print('[1]', flush=True); print('{\"id\": [], \"result\": 1}', flush=True)\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line); i = m.get('id')\n"
        "    if m['method'] == 'initialize': send({'id': i, 'result': {'protocolVersion': 1, 'authMethods': 3}})\n"
        "    elif m['method'] == 'session/new': send({'id': i, 'result': {'sessionId': 'x'}})\n"
        "    elif m['method'] == 'session/prompt':\n"
        "        for u in (None, 3, {}, {'sessionUpdate': 'tool_call'}, {'sessionUpdate': 'tool_call',\n"
        "                  'toolCallId': 'c', 'title': 7, 'kind': [], 'rawInput': 'x', 'content': 'y'},\n"
        "                  {'sessionUpdate': 'tool_call_update', 'toolCallId': 'c', 'status': 'completed',\n"
        "                   'content': [3, {}, {'type': 'diff'}, {'type': 'content'}]},\n"
        "                  {'sessionUpdate': 'agent_message_chunk', 'content': 5},\n"
        "                  {'sessionUpdate': 'agent_message_chunk', 'content': {'type': 'text', 'text': 'a\\x1b'}}):\n"
        "            send({'method': 'session/update', 'params': {'sessionId': 'x', 'update': u}})\n"
        "        for n, (name, p) in enumerate([('fs/read_text_file', {'path': 'rel'}), ('fs/read_text_file', []),\n"
        "                ('terminal/create', {}), ('session/request_permission', {}), ('no/such', None)]):\n"
        "            send({'id': 100 + n, 'method': name, 'params': p})\n"
        "        for n in range(5): assert 'error' in json.loads(sys.stdin.readline())\n"
        "        send({'id': i, 'result': {'stopReason': 'refusal', 'usage': {'inputTokens': 'many'}}})\n"
    )
    talk = Conversation(home, "A", f"{sys.executable} {script}")
    home.mkdir(exist_ok=True, mode=0o700)
    assert talk.say("hello") == "a\x1b"
    assert "refused to go on" in talk.of("error")[0].content["message"]
    assert fault_of(conversation.messages(talk.entries)) is None


@pytest.mark.full
def test_killed_between_the_log_and_the_prompt(
    talk: Conversation, notes: ProgramNotes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DIE_AT", "agent-prompt-logged")
    monkeypatch.setenv("HOLDFAST_DIE_MARK", str(tmp_path / "died"))
    talk.say("say hello")
    assert (tmp_path / "died").exists()
    assert len(notes.prompts) == 1 and notes.prompts[0].endswith("say hello")
    assert len(talk.of("user")) == 1


@pytest.mark.full
def test_the_daemon_may_be_killed_meanwhile(talk: Conversation, notes: ProgramNotes, tmp_path: Path) -> None:
    talk.send(f"wait {tmp_path}/go\nsay done")
    eventually(lambda: (tmp_path / "go.began").exists())
    with holdfast.connect() as client:
        os.kill(client.status()["pid"], signal.SIGKILL)
    (tmp_path / "go").touch()
    talk.ended(1)
    assert talk.of("assistant")[-1].content["text"].startswith("done")
    assert len(notes.opened) == 1
