"""`holdfast kill`."""

from __future__ import annotations

import os

import pytest

from tests.cli.calling import as_json, out, refusal, start, until_output
from tests.support import eventually, run_cli

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


def test_it_ends_the_tree_and_says_how() -> None:
    process_id = start("-c", "sleep 60 & (setsid sleep 60 &) ; echo ready; wait")
    until_output(process_id)
    assert out("kill", process_id) == f"{process_id}: ended (SIGTERM)\n"
    assert run_cli("wait", process_id).returncode == 143


def test_force_is_said() -> None:
    process_id = start("-c", STUBBORN)
    until_output(process_id)
    shown = as_json("kill", "--json", "--grace", "0.2", process_id)
    assert (shown["id"], shown["status"], shown["forced"], shown["survivors"]) == (process_id, "ended", True, [])
    assert shown["reason"] == "killed"


def test_a_command_that_exits_on_its_own_keeps_its_code() -> None:
    process_id = start("-c", "trap 'exit 42' TERM; echo ready; while :; do sleep 0.05; done")
    until_output(process_id)
    assert as_json("kill", "--json", process_id)["exit_code"] == 42


def test_one_that_has_ended_is_no_error() -> None:
    process_id = start("-c", "exit 3")
    run_cli("wait", process_id)
    assert out("kill", process_id) == f"{process_id}: has already ended (exit 3)\n"


def test_just_a_signal() -> None:
    process_id = start("-c", "trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done")
    until_output(process_id)
    assert "SIGUSR1 sent" in out("kill", "-s", "USR1", process_id)
    assert run_cli("wait", process_id).returncode == 9
    paused = start("sleep", "60")
    pid = as_json("inspect", "--json", paused)["pid"]

    def state() -> str:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0]

    out("kill", "-s", "stop", paused)
    eventually(lambda: state() == "T")
    out("kill", "-sCONT", paused)
    eventually(lambda: state() != "T")
    assert as_json("kill", "--json", "-s", "9", paused)["sent"] == 1


def test_several_by_name_session_task_or_all() -> None:
    a, b = (
        start("--name", "a", "--session", "s1", "sleep", "60"),
        start("--session", "s1", "--task", "t", "sleep", "60"),
    )
    c, d = start("--session", "s2", "--task", "t", "sleep", "60"), start("--session", "s2", "sleep", "60")
    assert {result["id"] for result in as_json("kill", "--json", "--task", "t")} == {b, c}
    assert [result["id"] for result in as_json("kill", "--json", "a", d)] == [a, d]
    e = start("--session", "s3", "sleep", "60")
    f = start("--session", "s4", "sleep", "60")
    assert [result["id"] for result in as_json("kill", "--json", "--session", "s3")] == [e]
    assert [result["id"] for result in as_json("kill", "--json", "--all")] == [f]
    assert as_json("kill", "--json", "--all") == []
    assert out("kill", "--session", "nobody") == ""


def test_leftovers_of_an_ended_process_can_be_reaped() -> None:
    process_id = start("-c", "sleep 60 & exit 4")
    run_cli("wait", process_id)
    (pid,) = as_json("inspect", "--json", process_id)["leftover_pids"]
    out("kill", process_id)
    eventually(lambda: not os.path.exists(f"/proc/{pid}"))


@pytest.mark.parametrize("which", [["--all"], ["--session", "left"], ["--task", "left"]], ids=" ".join)
def test_leftovers_of_ended_processes_are_among_all(which: list[str]) -> None:
    process_id = start("--session", "left", "--task", "left", "-c", "sleep 60 & exit 4")
    silent = start("--session", "left", "--task", "left", "-c", "exit 5")
    run_cli("wait", process_id, silent)
    (pid,) = as_json("inspect", "--json", process_id)["leftover_pids"]
    shown = out("kill", *which)
    assert process_id in shown and silent not in shown
    eventually(lambda: not os.path.exists(f"/proc/{pid}"))


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nobody"],
        ["ID", "nobody"],
        ["ID", "--all"],
        ["--all", "--session", "s"],
        ["--session"],
        ["--session", ""],
        ["-s", "NOSUCH", "ID"],
        ["-s", "0", "ID"],
        ["-s", "99", "ID"],
        ["-s", "", "ID"],
        ["-s", "-1", "ID"],
        ["-s", "9" * 100, "ID"],
        ["--grace", "-1", "ID"],
        ["--grace", "inf", "ID"],
    ],
    ids=" ".join,
)
def test_invalid_arguments_are_refused_and_kill_nothing(words: list[str]) -> None:
    process_id = start("sleep", "60")
    refusal("kill", *(process_id if word == "ID" else word for word in words))
    assert as_json("inspect", "--json", process_id)["status"] == "running"
