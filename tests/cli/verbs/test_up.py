"""`holdfast up`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.output.prefixes import Prefixes
from tests.cli.calling import Terminal, as_json, out, refusal
from tests.support import eventually, run_cli

FILE = """
[project]
name = "shop"
[processes.setup]
command = "echo preparing; echo rest | tr -d '\\\\n'"
[processes.web]
command = "echo web is up; exec sleep 1000"
depends_on = { setup = "completed" }
[processes.worker-2]
command = "trap 'echo bye; exit 0' TERM; echo works; while :; do sleep 0.05; done"
depends_on = ["web"]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "holdfast.toml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return tmp_path


@pytest.fixture(autouse=True)
def _after(here: Path) -> object:
    yield
    run_cli("down", "-p", "shop", "--grace", "0.2")


def running() -> list[str]:
    return [process["name"] for process in as_json("ps", "--json", "--task", "project:shop")]


def test_in_the_background_it_returns_when_all_is_up() -> None:
    done = run_cli("up", "-d")
    assert done.returncode == 0, done
    shown = done.stdout.decode().split("\n")
    assert shown[0].split() == ["NAME", "STATUS", "READY", "RESTARTS", "PORTS", "AGE", "ID"]
    assert [line.split()[:2] for line in shown[1:4]] == [["setup", "exit"], ["web", "running"], ["worker-2", "running"]]
    assert running() == ["shop.web", "shop.worker-2"]
    assert b"holdfast: web: started" in done.stderr
    again = run_cli("up", "-d")
    assert b"started" not in again.stderr and b"web: runs unchanged" in again.stderr


def test_json_is_an_object_a_line() -> None:
    lines = [json.loads(line) for line in out("up", "-d", "--json", "web").splitlines()]
    events = [(line["event"], line["member"]) for line in lines]
    assert ("started", "setup") in events and ("completed", "setup") in events
    assert events[-1] == ("started", "web")
    assert lines[-1]["process"]["name"] == "shop.web" and lines[-1]["id"] == lines[-1]["process"]["id"]


def test_one_view_of_all_and_an_end_for_all_on_ctrl_c() -> None:
    with Terminal("up") as terminal:
        terminal.see("works")
        terminal.process.send_signal(signal.SIGINT)
        seen = terminal.see("bye")
        assert b"stopping project shop" in seen
        assert terminal.end() == 130
    assert running() == []


def test_prefixes_are_aligned_and_coloured_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with Terminal("up", "setup") as terminal:
        seen = terminal.see("rest")
        assert b"\x1b[36msetup |\x1b[0m rest" in seen
        assert terminal.end() == 0
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
        with Terminal("up", "setup") as terminal:
            assert b"setup | rest" in terminal.see("rest")
            terminal.end()
        monkeypatch.delenv(name)
    assert "\x1b" not in out("up", "setup")


def test_the_view_through_a_pipe() -> None:
    command = [sys.executable, "-m", "holdfast", "up"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline().decode() for _ in range(4)]
        assert seen == ["setup    | preparing\n", "setup    | rest\n", "web      | web is up\n", "worker-2 | works\n"]
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read().endswith(b"worker-2 | bye\n")
        assert process.wait(15) == 143
    assert running() == []


def test_a_second_ctrl_c_forces(here: Path) -> None:
    (here / "holdfast.toml").write_text(
        "[project]\nname = 'shop'\n[processes.a]\ncommand = \"trap '' TERM; echo on; while :; do sleep 0.05; done\""
    )
    with Terminal("up") as terminal:
        terminal.see("on")
        terminal.process.send_signal(signal.SIGINT)
        assert b"^C again kills it" in terminal.see("a: stopping")
        terminal.process.send_signal(signal.SIGINT)
        terminal.see("by force")
        assert terminal.end() == 130
    assert running() == []


def test_it_ends_when_all_have_ended_with_the_code_of_what_failed(here: Path) -> None:
    (here / "holdfast.toml").write_text("[processes]\na.command = 'echo a'\nb.command = 'sleep 0.3; exit 5'")
    done = run_cli("up", "-p", "shop")
    assert done.returncode == 5, done
    assert done.stdout == b"a | a\n"
    assert b"b: " in done.stderr and b"exit 5" in done.stderr


def test_what_is_restarted_elsewhere_stays_in_view() -> None:
    with Terminal("up", "web") as terminal:
        terminal.see("web is up")
        assert run_cli("up", "-d", "--fresh", "web").returncode == 0
        terminal.see("web is up")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
    assert running() == []


def test_a_one_shot_that_fails_is_said_with_what_it_holds_up(here: Path) -> None:
    (here / "holdfast.toml").write_text(FILE.replace("echo preparing", "exit 9"))
    done = run_cli("up", "-d")
    assert done.returncode == 9
    said = done.stderr.decode()
    assert "setup ended (exit 9) instead of completing. Next: holdfast logs shop.setup\n" in said
    assert "web: is not started" in said and "worker-2: is not started" in said
    assert running() == []
    assert run_cli("up").returncode == 9
    lines = [json.loads(line) for line in run_cli("up", "-d", "--json").stdout.splitlines()]
    assert [line["error"]["code"] for line in lines if "error" in line] == ["need_failed"]


def test_up_into_a_pipe_that_closes_prints_no_traceback() -> None:
    done = subprocess.run(
        f"{sys.executable} -m holdfast up | head -1", shell=True, capture_output=True, timeout=30, check=False
    )
    assert done.stdout in (b"setup    | preparing\n", b"web      | web is up\n")
    assert b"Traceback" not in done.stderr


def test_check_says_the_order_or_what_is_wrong(here: Path) -> None:
    assert out("up", "--check").split("\n")[1:4] == ["1. setup", "2. web", "3. worker-2"]
    assert as_json("up", "--check", "--json")["order"] == [["setup"], ["web"], ["worker-2"]]
    (here / "holdfast.toml").write_text("[processes.web]\ncommand = 'x'\nready_port = '80'")
    assert "holdfast.toml:3: processes.web.ready_port must be an integer, not a string. Next: write it in" in refusal(
        "up", "--check"
    )
    done = run_cli("up", "--json")
    assert json.loads(done.stdout)["error"]["code"] == "bad_value"


def test_check_looks_for_directories_that_nothing_in_the_file_can_make(here: Path) -> None:
    text = "[processes.web]\ncommand = 'x'\ncwd = 'build/web'\n"
    (here / "holdfast.toml").write_text(text)
    said = refusal("up", "--check")
    assert f"holdfast.toml:3: processes.web.cwd is {here}/build/web, which is no directory. Next: create it" in said
    build = "depends_on = { build = 'completed' }\n[processes.build]\ncommand = 'y'"
    (here / "holdfast.toml").write_text(text + build)
    assert out("up", "--check").split("\n")[1:3] == ["1. build", "2. web"]
    (here / "holdfast.toml").write_text(text)
    (here / "build" / "web").mkdir(parents=True)
    assert out("up", "--check").split("\n")[1] == "1. web"


def test_status_before_and_after() -> None:
    assert [s["process"] for s in as_json("up", "--status", "--json", "-p", "never")] == [None] * 3
    run_cli("up", "-d", "web")
    lines = out("up", "--status").split("\n")
    assert [line.split()[1] for line in lines[1:3]] == ["exit", "running"]


def test_status_on_a_narrow_terminal_has_fewer_columns_and_short_ids() -> None:
    run_cli("up", "-d", "web")
    with Terminal("up", "--status", cols=40) as terminal:
        head, *rows = terminal.rest().strip().split("\r\n")
    assert head.split() == ["NAME", "STATUS", "PORTS", "ID"]
    assert all(len(row) <= 40 and "…" not in row for row in rows)
    assert "proc_" not in rows[1]


def test_wrong_calls(here: Path) -> None:
    assert "no process 'wbe'" in refusal("up", "-d", "wbe")
    assert "no process 'wbe'" in refusal("up", "wbe")
    assert "either --check or --status" in refusal("up", "--check", "--status")
    assert "there is no file" in refusal("up", "-f", "none.toml")
    assert "a project cannot be called '../x'" in refusal("up", "-p", "../x")
    (here / "holdfast.toml").unlink()
    assert "no holdfast.toml or Procfile in" in refusal("up")


def test_a_procfile(here: Path) -> None:
    (here / "holdfast.toml").unlink()
    (here / "Procfile").write_text("web: echo port $PORT; exec sleep 1000\n")
    assert run_cli("up", "-d", "-p", "shop").returncode == 0
    eventually(lambda: out("logs", "shop.web") == "port 5000\n")


def test_long_names_are_not_aligned() -> None:
    assert Prefixes(["a", "b" * 30]).lines("a", "x\n") == f"{'a'.ljust(24)} | x\n"
    assert Prefixes(["a"]).lines("other", "x\ny") == "other | x\nother | y\n"
