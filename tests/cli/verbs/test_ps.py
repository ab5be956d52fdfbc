"""`holdfast ps`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from holdfast.ops.records import PROCESS_FIELDS
from tests.cli.calling import Terminal, as_json, out, refusal, start, until_output
from tests.cli.verbs.test_top import LISTEN
from tests.support import eventually, run_cli

_SWITCHES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")


def with_colours(**more: str) -> dict[str, str]:
    """The environment of the test, with a terminal that has colours."""
    return {**{name: value for name, value in os.environ.items() if name not in _SWITCHES}, "TERM": "xterm", **more}


def test_an_array_of_objects_or_a_table() -> None:
    process_id = start("--name", "shown", "--session", "s1", "--task", "t1", "-c", "echo hello; sleep 60")
    (shown,) = as_json("ps", "--json")
    assert list(shown) == list(PROCESS_FIELDS)
    head, row = out("ps").strip().split("\n")
    assert head.split() == ["ID", "NAME", "STATUS", "AGE", "SESSION", "OUTPUT", "COMMAND"]
    assert row.split()[:3] == [process_id, "shown", "running"]
    assert row.endswith("echo hello; sleep 60")


def test_ended_ones_only_with_all() -> None:
    process_id = start("-c", "exit 3")
    run_cli("wait", process_id)
    assert process_id not in out("ps")
    assert "exit 3" in next(line for line in out("ps", "-a").split("\n") if process_id in line)
    assert process_id in [process["id"] for process in as_json("ps", "--all", "--json")]


def test_by_session_and_task() -> None:
    a, b = start("--session", "a", "--task", "x", "sleep", "60"), start("--session", "b", "sleep", "60")
    assert [process["id"] for process in as_json("ps", "--json", "--session", "a")] == [a]
    assert [process["id"] for process in as_json("ps", "--json", "--session=b")] == [b]
    assert [process["id"] for process in as_json("ps", "--json", "--task", "x")] == [a]
    assert as_json("ps", "--json", "--session", "nobody") == []


def test_hostile_commands_are_made_visible() -> None:
    start("-c", "# \x1b]0;owned\x07\x1b[2J\u202e\n sleep 60")
    shown = out("ps")
    assert "\x1b" not in shown
    assert "\\x1b]0;owned\\x07" in shown
    assert "\u202e" not in shown
    assert len(shown.strip().split("\n")) == 2


def test_on_a_terminal_lines_are_cut_to_its_width() -> None:
    start("-c", f"sleep 60; : {'x' * 500}")
    with Terminal("ps", cols=90) as terminal:
        row = terminal.see("…").decode().split("\r\n")[-1]
        assert len(re.sub(r"\x1b\[[0-9;]*m", "", row)) == 90
        assert terminal.end() == 0


def test_bad_values() -> None:
    refusal("ps", "extra")
    refusal("ps", "--session")
    refusal("ps", "--session", "\x1b")
    refusal("ps", "--limit", "5")


def head_of(text: str) -> list[str]:
    return text.split("\n")[0].split()


def test_columns_that_only_some_processes_have() -> None:
    start("--name", "plain", "sleep", "60")
    assert head_of(out("ps")) == ["ID", "NAME", "STATUS", "AGE", "SESSION", "OUTPUT", "COMMAND"]
    start("--name", "served", "--ready-uptime", "600", "--", sys.executable, "-c", LISTEN)
    until_output("served")
    port = out("logs", "served").strip()
    eventually(lambda: port in out("ps"))
    out("restart", "plain")
    head, first, second = out("ps").strip().split("\n")
    assert head.split()[:7] == ["ID", "NAME", "STATUS", "READY", "RESTARTS", "AGE", "PORTS"]
    assert first.split()[1:5] == ["plain", "running", "-", "1"]
    assert second.split()[1:5] == ["served", "running", "not", "yet"] and port in second.split()


def test_how_long_it_ran_and_how_long_ago_it_ended() -> None:
    process_id = start("--session", "over", "-c", "sleep 0.1; exit 3")
    run_cli("wait", process_id)
    head, row = out("ps", "-a", "--session", "over").strip().split("\n")
    assert head.split()[3:5] == ["AGE", "ENDED"]
    assert re.search(r" exit 3  0s   \d+s ago  over ", row)


def test_stalled_asking_and_given_up_ones_are_shown_as_such() -> None:
    start("--name", "idle", "--stall", "0.1", "sleep", "60")
    start("--name", "asking", "-t", "-c", "read -p 'name? ' x")
    start("--name", "flaky", "--restart", "always", "--restart-limit", "1", "--restart-delay", "0.01", "false")
    eventually(lambda: " stalled " in out("ps", "--filter", "name=idle"))
    eventually(lambda: " asks " in out("ps", "--filter", "name=asking"))
    eventually(lambda: " gave up, exit 1 " in out("ps", "--filter", "name=flaky", "-a"))


def names(*words: str) -> list[str]:
    return [process["name"] for process in as_json("ps", "--json", *words)]


def test_filters_of_any_field() -> None:
    for name, words in {
        "one": ["--task", "filtered", "-c", "exit 3"],
        "two": ["--task", "filtered", "-c", "exit 0"],
        "three": ["--task", "filtered", "-t", "sleep", "60"],
    }.items():
        start("--name", name, *words)
    run_cli("wait", "one", "two")
    of_task = ["--filter", "task=filtered"]
    assert names(*of_task) == ["three"]
    assert names(*of_task, "-a") == ["one", "two", "three"]
    assert names(*of_task, "--filter", "exit_code=3") == ["one"]
    assert names(*of_task, "--filter", "status=ended", "--filter", "exit_code!=3") == ["two"]
    assert names(*of_task, "-a", "--filter", "pty=yes") == ["three"]
    assert names(*of_task, "-a", "--filter", "command=exit") == ["one", "two"]
    assert names(*of_task, "-a", "--filter", "argv=60") == ["three"]
    assert names(*of_task, "-a", "--filter", "reason=null") == ["three"]
    assert "one" in out("ps", *of_task, "--filter", "reason=exited")
    assert "Next: holdfast ps --json shows all fields" in refusal("ps", "--filter", "colour=red")
    assert "(did you mean session?)" in refusal("ps", "--filter", "sesion=x")
    assert "did you mean --filter status=ended?" in refusal("ps", "--filter", "status=exited")
    assert "--filter reason=exited --filter exit_code!=0?" in refusal("ps", "--filter", "status=failed")
    assert "did you mean --filter status=running?" in refusal("ps", "--filter", "status=up")
    assert "Next: one of: running, ended, waiting, restarting, unreachable" in refusal("ps", "--filter", "status!=x")
    refusal("ps", "--filter", "status")
    refusal("ps", "--filter", "=x")


def test_sorted_and_only_some() -> None:
    for name, size in (("b", 2000), ("c", 10), ("a", 500)):
        start("--name", name, "--session", "sorted", "-c", f"head -c {size} /dev/zero; sleep 60")
    of = ["--session", "sorted"]
    eventually(lambda: [one["output_bytes"] for one in as_json("ps", "--json", *of)] == [2000, 10, 500])
    assert names(*of) == ["b", "c", "a"]
    assert names(*of, "-n", "2") == ["c", "a"]
    assert names(*of, "-n", "0") == [] and names(*of, "-n", "99") == ["b", "c", "a"]
    assert names(*of, "--sort", "name") == ["a", "b", "c"]
    assert names(*of, "--sort", "-output", "-n", "2") == ["b", "a"]
    assert names(*of, "--sort=-started_at") == ["a", "c", "b"]
    assert names(*of, "--sort", "exit_code") == ["b", "c", "a"]
    assert "memory" in refusal("ps", "--sort", "beauty")
    assert "(did you mean memory?)" in refusal("ps", "--sort", "-memroy")
    refusal("ps", "-n", "-1")
    refusal("ps", "-n", "many")


@pytest.mark.parametrize("cols", [1, 20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(cols: int) -> None:
    start("--name", "wide", "--ready-uptime", "0", "-c", f"sleep 60; : {'日本' * 100}")
    start("--name", "a-rather-long-name-of-a-process", "--session", "a-session-with-a-long-name", "-c", "exit 3")
    run_cli("wait", "a-rather-long-name-of-a-process")
    with Terminal("ps", "-a", cols=cols, env=with_colours(NO_COLOR="1")) as terminal:
        lines = terminal.rest().rstrip("\r\n").split("\r\n")
        assert terminal.end() == 0
    assert len(lines) >= 3
    assert max(width(line) for line in lines) <= cols
    if cols >= 40:
        assert any("running" in line for line in lines) and any("exit 3" in line for line in lines)
        assert any("wide" in line for line in lines)
    if cols == 40:
        row = next(line for line in lines if re.search(" wide +running ", line))
        assert out("inspect", row.split()[0]).startswith("proc_")  # a short id is accepted


def width(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def test_ports_are_links_where_a_terminal_has_colours() -> None:
    start("--name", "served", "--", sys.executable, "-c", LISTEN)
    until_output("served")
    port = out("logs", "served").strip()
    eventually(lambda: port in out("ps"))
    link = f"\x1b]8;;http://localhost:{port}\x1b\\{port}\x1b]8;;\x1b\\"
    for verb in (["ps"], ["inspect", "served"]):
        with Terminal(*verb, cols=200, env=with_colours()) as terminal:
            assert link in terminal.rest()
            assert terminal.end() == 0
        for switches in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": "dumb", "FORCE_COLOR": "1"}):
            with Terminal(*verb, cols=200, env=with_colours(**switches)) as terminal:
                assert "\x1b]8" not in terminal.rest()
                assert terminal.end() == 0
        assert b"\x1b]8" not in run_cli(*verb, env={"FORCE_COLOR": "1", "TERM": "xterm"}).stdout


def test_watched_on_a_terminal_until_a_key() -> None:
    start("--name", "seen-live", "sleep", "600")
    for key in (b"q", b"\x03"):
        with Terminal("ps", "--watch", cols=100, rows=12) as terminal:
            terminal.see("\x1b[?1049h")
            terminal.see("q: quit")
            terminal.see("seen-live")
            start("--name", f"later-{key[0]}", "sleep", "600")
            terminal.see(f"later-{key[0]}")
            terminal.type(key)
            terminal.see("\x1b[?1049l")
            assert terminal.end() == 0
            assert terminal.is_as_before


@pytest.mark.parametrize("json_too", [False, True])
def test_watched_in_a_pipe_each_change_is_a_line(json_too: bool) -> None:
    ended = start("-c", "exit 0")
    run_cli("wait", ended)
    process_id = start("--name", f"changing-{json_too}", "sleep", "600")
    words = [sys.executable, "-m", "holdfast", "ps", "--watch", *(["--json"] if json_too else [])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None

        def next_of(status: str) -> None:
            assert watching.stdout is not None
            while line := watching.stdout.readline():
                assert ended not in line
                if process_id in line:
                    assert json.loads(line)["status"] == status if json_too else f"  {status}" in line
                    return

        next_of("running")
        out("kill", process_id)
        next_of("ended" if json_too else "killed, SIGTERM")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(15) == 130


def test_short_for_a_prompt(tmp_path: Path) -> None:
    nowhere = {"HOLDFAST_HOME": str(tmp_path / "no" / "instance")}
    done = run_cli("ps", "--short", env=nowhere)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (tmp_path / "no").exists()  # no daemon was started
    of = ["--session", "prompt"]
    assert out("ps", "--short", *of) == ""
    for words in (["sleep", "60"], ["-t", "-c", "read -p 'name? ' x"], ["false"], ["true"]):
        start(*of, *words)
    eventually(lambda: out("ps", "--short", *of) == "2 running, 1 asking, 1 failed\n")
    expected = {"running": 2, "waiting": 0, "asking": 1, "stalled": 0, "failed": 1}
    assert as_json("ps", "--short", "--json", *of) == expected
    assert out("ps", "--short", "--session", "unknown") == ""
    refusal("ps", "--short", "--watch")
    refusal("ps", "--short", "--session", "\x1b")
