"""What a command gets to see."""

from __future__ import annotations

from holdfast.daemon.start.environment import merge, merge_path
from holdfast.places.login_env import parse
from holdfast.secrets.environment import minimal

OWN = {"HOLDFAST_ID": "proc_1"}


def test_the_caller_wins_over_the_profile_and_a_grant_over_the_caller() -> None:
    env = merge({"A": "login", "B": "login", "C": "login"}, {"B": "caller", "C": "caller"}, {"C": "grant"}, OWN, False)
    assert (env["A"], env["B"], env["C"]) == ("login", "caller", "grant")


def test_the_path_has_the_callers_entries_first_and_none_twice() -> None:
    assert merge_path("/venv/bin:/usr/bin", "/usr/bin:/home/me/bin") == "/venv/bin:/usr/bin:/home/me/bin"
    assert merge_path(None, "/usr/bin") == "/usr/bin"
    assert merge_path(None, None) == ""


def test_our_own_names_cannot_be_taken() -> None:
    assert merge({}, {"HOLDFAST_ID": "forged"}, {"HOLDFAST_ID": "forged"}, OWN, False)["HOLDFAST_ID"] == "proc_1"


def test_python_does_not_hold_back_its_output_unless_the_caller_says_so() -> None:
    assert merge({}, {}, {}, OWN, False)["PYTHONUNBUFFERED"] == "1"
    assert merge({}, {"PYTHONUNBUFFERED": ""}, {}, OWN, False)["PYTHONUNBUFFERED"] == ""


def test_a_terminal_is_a_neutral_one_unless_another_was_granted() -> None:
    caller = {"TERM": "weird", "COLUMNS": "7", "LINES": "3"}
    env = merge({}, caller, {}, OWN, True)
    assert (env["TERM"], "COLUMNS" in env, "LINES" in env) == ("xterm-256color", False, False)
    assert merge({}, caller, {"TERM": "vt100"}, OWN, True)["TERM"] == "vt100"
    assert merge({}, caller, {}, OWN, False)["TERM"] == "weird"


def test_our_own_processes_keep_only_what_they_need() -> None:
    environ = {
        "HOME": "/h",
        "LC_ALL": "C",
        "HOLDFAST_HOME": "/x",
        "HOLDFAST_ID": "p",
        "AWS_SECRET_ACCESS_KEY": "s",
        "GITHUB_TOKEN": "t",
    }
    assert set(minimal(environ)) == {"HOME", "LC_ALL", "HOLDFAST_HOME"}


def test_what_a_profile_prints_is_not_taken_for_its_environment() -> None:
    answer = (
        b"Welcome!\nA=not this\n\0holdfast-environment\0A=this\0B=two\nlines\0_=/usr/bin/env\0SHLVL=1\0HOLDFAST_X=1\0"
    )
    assert parse(answer) == {"A": "this", "B": "two\nlines"}


def test_a_shell_that_does_not_answer_gives_no_environment() -> None:
    assert parse(b"") is None
    assert parse(b"This account is currently not available.\n") is None
