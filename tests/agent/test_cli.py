"""`holdfast agent` as a user calls it: one turn, conversations on a real terminal, the log in all formats."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.agent.endpoint import Call, Endpoint, Fail, Say, call, fault_of, texts_of
from tests.agent.stage import Conversation
from tests.cli.calling import Terminal, as_json, out, refusal
from tests.support import eventually, run_cli


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not answer where its cursor is."""
    monkeypatch.setenv("PROMPT_TOOLKIT_NO_CPR", "1")


#: Needs approval, and does nothing where there is no repository.
_DANGEROUS = "git push --force"
_GREETING = Say("let me see", calls=[Call("terminal", {"command": "echo hi"})])


def _lines(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out(*arguments).splitlines()]


def test_one_turn_prints_the_answer(endpoint: Endpoint, talk: Conversation) -> None:
    endpoint.script(_GREETING, Say("It said \x1b[31mhi.\nDone."))
    done = run_cli("agent", "--session", "A", "say", "hi")
    assert (done.returncode, done.stdout.decode()) == (0, "let me see\nIt said \\x1b[31mhi.\nDone.\n")
    assert "▸ terminal  echo hi" in done.stderr.decode()
    assert texts_of(endpoint.asked[0]) == ["say hi"]


def test_quiet_prints_the_last_answer_alone(endpoint: Endpoint, talk: Conversation) -> None:
    endpoint.script(_GREETING, Say("hi it was"))
    done = run_cli("agent", "--session", "A", "--quiet", "-", input=b"say hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hi it was\n", b"")


def test_json_is_an_object_a_line(endpoint: Endpoint, talk: Conversation) -> None:
    endpoint.script(_GREETING, Say("done"))
    rows = _lines("agent", "--session", "A", "go", "--json")
    assert [row["type"] for row in rows] == ["message", "message", "tool_call", "tool_result", "message", "end"]
    assert rows[3]["id"] == rows[2]["id"] and rows[-1]["reason"] == "done"
    assert all(row["session"] == "A" for row in rows)


def test_a_failure_is_one_line_and_125(endpoint: Endpoint, talk: Conversation) -> None:
    endpoint.script(Fail(404, {"error": {"message": "no such model"}}), Fail(404))
    done = run_cli("agent", "--session", "A", "go")
    assert done.returncode == 125 and "no such model" in done.stderr.decode() and b"Traceback" not in done.stderr
    rows = [json.loads(line) for line in run_cli("agent", "--session", "A", "go", "--json").stdout.splitlines()]
    assert rows[-1]["type"] == "end" and "404" in rows[-1]["error"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["agent", "x", "--toolset", "nope"], "no toolset 'nope'"),
        (["agent", "   "], "the prompt is empty"),
        (["agent"], "there is no prompt on stdin"),
        (["agent", "--session", "a\x1b[2Jb", "x"], "printable"),
        (["agent", "--session", "x" * 257, "x"], "256"),
        (["agent", "x", "--format", "atif"], "--format is for agent log"),
        (["agent", "log", "nothing"], "no conversation with an agent"),
        (["agent", "log", "a", "--format", "xml"], "cannot be 'xml'"),
        (["agent", "--setup"], "needs a terminal"),
        (["agent", "x" * 300_000], "longer than"),
    ],
)
def test_bad_input_is_refused_in_one_line(endpoint: Endpoint, arguments: list[str], said: str) -> None:
    if len(arguments[-1]) > 100_000:
        done = run_cli("agent", "-", input=arguments[-1].encode())
        assert done.returncode == 125 and said in done.stderr.decode() and done.stderr.count(b"\n") == 1
    else:
        assert said in refusal(*arguments)


def test_without_a_model_it_says_what_to_do(home: Path) -> None:
    assert "holdfast agent --setup" in refusal("agent", "hello")


def test_a_bad_configuration_is_one_line(home: Path, endpoint: Endpoint) -> None:
    for text in ("model = 3", "nonsense = 1", "[mcp.x]\nfoo = 1", "not toml at all", 'toolset = "gone"'):
        (home / "agent/config.toml").write_text(f'base_url = "{endpoint.url}"\n{text}\n')
        said = refusal("agent", "--session", "A", "--model", "m", "hello")
        assert "agent/config.toml" in said or "gone" in said


def test_an_endpoint_that_is_not_there(home: Path, endpoint: Endpoint) -> None:
    (home / "agent/config.toml").write_text('base_url = "http://127.0.0.1:9/v1"\nmodel = "m"\nretries = 1\n')
    done = run_cli("agent", "--session", "A", "hello")
    assert done.returncode == 125 and "no answer of the endpoint" in done.stderr.decode()


def test_the_environment_names_endpoint_model_and_key(
    home: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "agent/config.toml").unlink()
    endpoint.script(Say("by env"), model="env-model")
    env = {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "sk-env", "HOLDFAST_MODEL": "env-model"}
    assert run_cli("agent", "--quiet", "hello", env=env).stdout == b"by env\n"
    assert endpoint.keys == ["Bearer sk-env"]


def test_a_key_comes_from_a_command_or_a_file(home: Path, endpoint: Endpoint) -> None:
    from holdfast.agent.config import key_path, write_config

    write_config(str(home), {"key_command": "echo sk-from-command"}, "sk-from-file")
    assert stat.S_IMODE(os.stat(key_path(str(home))).st_mode) == 0o600
    out("agent", "--session", "A", "hello")
    write_config(str(home), {"key_command": ""})
    out("agent", "--session", "B", "hello")
    assert endpoint.keys == ["Bearer sk-from-command", "Bearer sk-from-file"]


def test_the_log_in_all_formats(endpoint: Endpoint, talk: Conversation) -> None:
    bad = Call("terminal", "{bad")
    endpoint.script(Say("", calls=[Call("terminal", {"command": "echo '```'"}), bad], reasoning="hm"), Say("done"))
    out("agent", "--session", "A", "begin\x1b[2J")
    entries = [json.loads(line) for line in out("agent", "log", "A").splitlines()]
    assert [entry["id"] for entry in entries] == list(range(1, len(entries) + 1))
    assert {"id", "parent", "time", "kind", "content"} == set(entries[0])
    assert fault_of(json.loads(out("agent", "log", "A", "--format", "openai"))) is None
    assert "## User" in out("agent", "log", "A", "--format", "markdown")
    atif = json.loads(out("agent", "log", "A", "--format", "atif"))
    assert atif["schema_version"] == "ATIF-v1.8" and atif["agent"]["model_name"] == "m"
    assert [step["source"] for step in atif["steps"]] == ["system", "user", "agent", "agent"]
    assert [step["step_id"] for step in atif["steps"]] == [1, 2, 3, 4]
    step = atif["steps"][2]
    calls = {one["tool_call_id"] for one in step["tool_calls"]}
    assert calls == {one["source_call_id"] for one in step["observation"]["results"]}
    assert all(isinstance(one["arguments"], dict) for one in step["tool_calls"])
    assert step["reasoning_content"] == "hm"
    assert atif["final_metrics"]["total_prompt_tokens"] == 200
    assert [one["session"] for one in as_json("agent", "log", "--json")] == ["A"]


def test_resume_goes_on_with_the_last_session(endpoint: Endpoint) -> None:
    endpoint.script(Say("one"), Say("two"))
    out("agent", "first")
    out("agent", "--resume", "second")
    assert texts_of(endpoint.asked[-1]) == ["first", "one", "second"]


def test_an_interrupt_ends_the_turn_not_the_agent(endpoint: Endpoint, talk: Conversation, tmp_path: Path) -> None:
    endpoint.script(call("terminal", command=f"touch {tmp_path}/began; sleep 1000"), Say("later"))
    command = [sys.executable, "-m", "holdfast", "agent", "--session", "A", "go"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as running:
        eventually(lambda: (tmp_path / "began").exists())
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    assert running.returncode == 130
    assert out("agent", "--session", "A", "--quiet", "and now").strip() == "later"


def test_a_killed_front_end_ends_no_agent(endpoint: Endpoint, talk: Conversation, tmp_path: Path) -> None:
    endpoint.script(call("terminal", command=f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"), Say("went on"))
    command = [sys.executable, "-m", "holdfast", "agent", "--session", "A", "go"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    ) as one:
        eventually(lambda: talk.of("tool_start"))
        one.kill()
    (tmp_path / "go").touch()
    talk.ended(1)
    assert talk.of("assistant")[-1].content["text"] == "went on"


def test_a_closed_stdout_is_no_traceback(endpoint: Endpoint, talk: Conversation) -> None:
    endpoint.script(Say("much\n" * 1000))
    command = f"{sys.executable} -m holdfast agent --session A go | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=False)
    assert done.stdout == b"much\n" and b"Traceback" not in done.stderr


def test_a_conversation_on_a_terminal(endpoint: Endpoint, talk: Conversation, tmp_path: Path) -> None:
    job = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; exit 4"
    endpoint.script(
        call("terminal", command=job, background=True, notify_on_complete=True),
        Say("it runs now"),
        Say("it failed, then"),
    )
    with Terminal("agent", "--session", "A") as terminal:
        terminal.see("session A")
        terminal.type(b"start it\r")
        terminal.see("it runs now")
        terminal.type(b"/ps\r")
        terminal.see("proc_")
        terminal.type(b"/tools\r")
        terminal.see("terminal")
        terminal.type(b"/nonsense\r")
        terminal.see("no command /nonsense")
        (tmp_path / "go").touch()
        terminal.see("✗ until [ -e")  # the command, not its id
        terminal.see("exit code 4")
        terminal.see("it failed, then")
        assert "the agent goes on" in _leave(terminal)
    assert eventually(talk.pid)
    with Terminal("agent", "--session", "A") as terminal:
        terminal.see("it failed, then")
        terminal.type(b"/help\r")
        terminal.see("/approve")
        _leave(terminal)


def test_the_interrupt_key_at_the_prompt_ends_the_turn_and_not_the_conversation(
    endpoint: Endpoint, talk: Conversation
) -> None:
    endpoint.script(Say("one two three four five\n" * 20, pause=5.0), Say("as you like"))
    with Terminal("agent", "--session", "A") as terminal:
        terminal.see("/help")
        terminal.see(">")
        terminal.type(b"a text without a turn\x03")
        terminal.see("^D leaves")
        terminal.type(b"begin\r")
        terminal.see("workin")
        eventually(lambda: endpoint.asked)
        terminal.type(b"\x03")
        terminal.see("interrupted")
        terminal.type(b"go on\r")
        assert b"the turn ended" not in terminal.see("as you like")
        _leave(terminal)
    assert [entry.content["reason"] for entry in talk.of("end")] == ["interrupted", "done"]


@pytest.mark.parametrize(("typed", "status"), [("\r", "denied"), ("y\r", "ended")])
def test_approvals_are_asked_inline_and_enter_is_no(
    endpoint: Endpoint, talk: Conversation, tmp_path: Path, typed: str, status: str
) -> None:
    endpoint.script(call("terminal", command=_DANGEROUS), Say("decided"))
    with Terminal("agent", "--session", "A") as terminal:
        terminal.see("session A")
        terminal.type(b"remove it\r")
        terminal.see("approve?")
        eventually(lambda: _is_shown(), timeout=10)
        terminal.type(typed.encode())
        terminal.see("decided")
        _leave(terminal)
    assert talk.results()[0]["status"] == status


def _leave(terminal: Terminal) -> str:
    """^D, again where it was typed while something was printed: what is shown at the end."""

    def has_left() -> bool:
        terminal.type(b"\x04")
        return terminal.process.poll() is not None

    eventually(has_left, pause=0.3)
    assert terminal.end() == 0
    return terminal.rest()


def _is_shown() -> bool:
    with holdfast.connect() as client:
        return any(one.state == "pending" for one in client.approvals())


def test_without_a_terminal_nothing_is_approved(endpoint: Endpoint, talk: Conversation, tmp_path: Path) -> None:
    endpoint.script(call("terminal", command=_DANGEROUS), Say("not allowed"))
    assert out("agent", "--session", "A", "--quiet", "remove it") == "not allowed\n"
    assert talk.results()[0]["reason"] == "no_approver"


def test_the_first_run_asks_for_the_endpoint(home: Path, tmp_path: Path) -> None:
    with Endpoint(Say("ready to work")) as endpoint, Terminal("agent", "--session", "A", "--setup") as terminal:
        terminal.see("Where is the model?")
        terminal.type(b"\x1b[B" * 9)  # down, to the last one: another endpoint
        terminal.type(b"\r")
        terminal.see("URL of the endpoint")
        terminal.type(f"{endpoint.url}\r".encode())
        terminal.see("Where is its key?")
        terminal.type(b"\r")
        terminal.see("Key (it is not shown)")
        terminal.type(b"sk-typed\r")
        terminal.see("Model:")
        terminal.type(b"m\r")
        assert b"sk-typed" not in terminal.see("written to")
        terminal.rest()
        assert terminal.end() == 0
        assert out("agent", "--quiet", "hello") == "ready to work\n"
        assert endpoint.keys[-1] == "Bearer sk-typed"
        assert stat.S_IMODE(os.stat(home / "agent/key").st_mode) == 0o600
