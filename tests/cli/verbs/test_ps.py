"""`holdfast ps`."""

from __future__ import annotations

import re

from holdfast.ops.records import PROCESS_FIELDS
from tests.cli.calling import Terminal, as_json, out, refusal, start
from tests.support import run_cli


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
