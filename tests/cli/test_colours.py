"""Colours: where people see them, and never where a program reads."""

from __future__ import annotations

import pytest

from holdfast.cli import console
from holdfast.cli.colours import enabled
from holdfast.cli.outcomes import colour
from holdfast.client.process import Process
from tests.cli.calling import Terminal, start
from tests.support import run_cli

TERM = {"TERM": "xterm"}


@pytest.mark.parametrize(
    ("env", "on_terminal", "in_pipe"),
    [
        (TERM, True, False),
        ({}, False, False),
        ({"TERM": ""}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({**TERM, "NO_COLOR": "1"}, False, False),
        ({**TERM, "NO_COLOR": ""}, True, False),
        ({**TERM, "CLICOLOR": "0"}, False, False),
        ({**TERM, "CLICOLOR": "1"}, True, False),
        ({**TERM, "FORCE_COLOR": "0"}, False, False),
        ({**TERM, "FORCE_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "3"}, True, True),
        ({"TERM": "dumb", "CLICOLOR_FORCE": "1"}, True, True),
        ({"CLICOLOR_FORCE": "0"}, False, False),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "x"}, False, False),
        ({"CLICOLOR_FORCE": "1", "FORCE_COLOR": "0"}, True, True),
    ],
)
def test_who_wants_colours(env: dict[str, str], on_terminal: bool, in_pipe: bool) -> None:
    assert (enabled(env, True), enabled(env, False)) == (on_terminal, in_pipe)


def test_a_table_is_aligned_with_colours_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a", "日本", "x"), ("bb", "y", "z")]
    plain = console.table(("A", "B", "C"), rows)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    painted = console.table(("A", "B", "C"), rows, lambda row, column: "31" if (row, column) == (0, 1) else "")
    assert "\x1b[31m日本\x1b[0m" in painted
    for code in ("\x1b[31m", "\x1b[1m", "\x1b[0m"):
        painted = painted.replace(code, "")
    assert painted == plain


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"status": "running"}, "32"),
        ({"status": "running", "trouble": "x"}, "33"),
        ({"status": "unreachable"}, "33"),
        ({"status": "ended", "reason": "exited", "exit_code": 0}, "2"),
        ({"status": "ended", "reason": "exited", "exit_code": 2}, "31"),
        ({"status": "ended", "reason": "signaled", "signal": 11}, "31"),
        ({"status": "ended", "reason": "deadline", "signal": 15}, "31"),
        ({"status": "ended", "reason": "killed", "signal": 15}, "33"),
        ({"status": "ended", "reason": "lost"}, "33"),
    ],
)
def test_the_colour_of_a_status(fields: dict[str, object], code: str) -> None:
    assert colour(Process({"id": "p", **fields})) == code


def test_on_a_terminal_and_not_in_a_pipe_or_in_json(instance: object, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    start("--", "sleep", "60")
    with Terminal("ps") as terminal:
        terminal.see("\x1b[32mrunning")
    with Terminal("doctor") as terminal:
        terminal.see("\x1b[32mok\x1b[0m")
    with Terminal("inspect", "nosuch") as terminal:
        terminal.see("\x1b[31mholdfast:\x1b[0m no process nosuch")
    for words in (["ps"], ["doctor"], ["inspect", "nosuch"]):
        done = run_cli(*words)
        assert b"\x1b" not in done.stdout + done.stderr
    assert b"\x1b[32m" in run_cli("ps", env={"FORCE_COLOR": "1"}).stdout
    assert b"\x1b" not in run_cli("ps", "--json", env={"FORCE_COLOR": "1"}).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    with Terminal("ps") as terminal:
        assert b"\x1b" not in terminal.see("running")
