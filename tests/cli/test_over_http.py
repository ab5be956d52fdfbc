"""The command line with HOLDFAST_URL: the same verbs, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from tests.cli.calling import Terminal, as_json, out, refusal, start, until_output
from tests.support import run_cli

FILE = """
[project]
name = "remote"
[processes.web]
command = "echo web is up; exec sleep 1000"
ready_log = "up"
[processes.worker]
command = "exec sleep 1000"
depends_on = { web = "ready" }
"""


@pytest.fixture(autouse=True)
def over_http(instance: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with holdfast.connect() as client:
        monkeypatch.setenv("HOLDFAST_URL", client.http("open")["url"])
        yield
        client.kill(all=True, grace=0.2)


def test_run_in_the_foreground() -> None:
    done = run_cli("run", "--stdin", "-c", "cat; echo oops >&2; exit 3", input=b"hello\n")
    assert (done.returncode, done.stdout) == (3, b"hello\noops\n")


def test_run_on_a_terminal_which_answers_what_is_asked() -> None:
    ask = "stty raw -echo; printf '\\033[6n'; head -c 6 | od -c; stty sane"
    with Terminal("run", "-t", "-c", ask) as terminal:
        terminal.see("\x1b[6n")
        terminal.type(b"\x1b[7;9R")
        terminal.see("9   R")
        assert terminal.end() == 0
        assert terminal.is_as_before


def test_cp(tmp_path: Path) -> None:
    target = tmp_path / "target"
    assert run_cli("cp", "-", f"local:{target}", input=b"bytes" * 200_000).returncode == 0
    assert run_cli("cp", f"local:{target}", "-").stdout == b"bytes" * 200_000
    out("cp", f"local:{tmp_path}", str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "target").read_bytes() == b"bytes" * 200_000
    assert "there is no such file" in refusal("cp", "local:/missing", str(target))
    assert "there is no such directory" in refusal("cp", str(target), "local:/missing/x")


def test_exec_prune_and_holdfast_alone() -> None:
    start("--name", "server", "-e", "COLOUR=red", "--", "sleep", "1000")
    done = run_cli("exec", "server", "-e", "SIZE=9", "-c", "cat; echo $COLOUR $SIZE; exit 3", input=b"hello\n")
    assert (done.returncode, done.stdout) == (3, b"hello\nred 9\n")
    assert "no process" in refusal("exec", "nosuch", "--", "true")
    assert "server" in out()
    assert len(out("prune").split()) >= 1
    assert [process["name"] for process in as_json("ps", "-a", "--json")] == ["server"]


def test_ps_inspect_logs_and_grep() -> None:
    process_id = start("--name", "talks", "-c", "echo one; echo two; exec sleep 1000")
    until_output(process_id)
    assert [process["id"] for process in as_json("ps", "--json")] == [process_id]
    assert "talks" in out("ps")
    out("wait", "--until", "match", "--match", "two", "--from", "0", "talks")
    assert out("logs", "talks") == "one\ntwo\n"
    assert out("logs", "--grep", "TWO", "-i", "talks") == "two\n"
    assert out("logs", "--grep", "three", "talks") == ""
    assert [row["id"] for row in as_json("top", "--json", "--once")["processes"]] == [process_id]
    assert as_json("inspect", "--json", process_id)["tree"]


def test_wait_until_it_matches_or_is_ready() -> None:
    process_id = start("--stdin", "--ready-log", "^ready$", "-c", "read a; echo Found $a; read b; echo ready; read c")
    run_cli("send", process_id, "it")
    out("wait", "--until", "match", "--match", "found it", "--ignore-case", "--from", "0", process_id)
    run_cli("send", process_id, "go")
    out("wait", "--until", "ready", "--timeout", "10", process_id)


def test_restart_and_kill() -> None:
    process_id = start("--restart", "on-failure", "-c", "exec sleep 1000")
    out("restart", process_id)
    assert as_json("inspect", "--json", process_id)["restarts"] == 1
    out("kill", process_id)
    assert as_json("inspect", "--json", process_id)["reason"] == "killed"
    assert "no process" in refusal("restart", "nobody")


def test_the_inbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SESSION", "far away")
    assert run_cli("run", "-c", "exit 3").returncode == 3
    process_id = start("--notify=failure", "--stdin", "-c", "read line; exit 4")
    assert process_id in out("digest")
    out("send", process_id, "go")
    (notice,) = as_json("inbox", "--wait", "10", "--ack", "--json")
    assert (notice["process"], notice["data"]["exit_code"]) == (process_id, 4)
    assert out("inbox") == ""
    assert as_json("ack", "--json", notice["id"])["known"] == [notice["id"]]
    live = start("--parent-session", "parent", "-c", "exec sleep 1000")
    assert as_json("session", "rename", "far away", "near", "--json")["processes"]
    assert as_json("session", "end", "near", "--json")["passed"] == [{"id": live, "to": "parent"}]
    assert as_json("transfer", live, "third", "--json")["session"] == "third"


def test_up_and_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "holdfast.toml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    out("up", "-d")
    assert {process["name"] for process in as_json("ps", "--json")} == {"remote.web", "remote.worker"}
    out("down", "--grace", "0.5")
    assert as_json("ps", "--json") == []


def test_no_daemon_is_started_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "http://127.0.0.1:9")
    assert "no daemon answers" in refusal("ps")
