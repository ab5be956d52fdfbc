"""`holdfast restart`, and `holdfast run --restart`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import as_json, out, refusal, start, until_output
from tests.support import eventually, run_cli


def test_it_runs_again_with_the_same_id_and_log() -> None:
    process_id = start("--name", "again", "-c", "echo up; exec sleep 60")
    until_output(process_id)
    before = as_json("inspect", "--json", process_id)
    assert out("restart", "again") == f"{process_id}\n"
    after = as_json("restart", "--json", "again")
    assert (after["id"], after["restarts"], after["status"]) == (process_id, 2, "running")
    assert after["pid"] != before["pid"]
    assert out("kill", "again")
    assert out("restart", "again") == f"{process_id}\n"


def test_several_at_once() -> None:
    first, second = start("sleep", "60"), start("sleep", "60")
    assert out("restart", first, second).split() == [first, second]
    assert [shown["restarts"] for shown in as_json("restart", "--json", first, second)] == [2, 2]


def test_a_crash_loop_in_the_foreground_ends_with_the_last_code(tmp_path: Path) -> None:
    command = f"cd {tmp_path}; echo x >> n; echo run $(wc -l < n); exit $(wc -l < n)"
    done = run_cli("run", "--restart", "on-failure", "--restart-limit", "2", "--restart-delay", "0.1", "-c", command)
    assert (done.returncode, done.stdout) == (3, b"run 1\nrun 2\nrun 3\n")


def test_one_between_two_runs_is_shown_so() -> None:
    process_id = start("--restart", "always", "--restart-delay", "60", "false")
    eventually(lambda: as_json("inspect", "--json", process_id)["restart_at"])
    assert "restarting" in next(line for line in out("ps").splitlines() if process_id in line)
    assert out("kill", process_id) == f"{process_id}: ended (exit 1)\n"
    assert run_cli("wait", process_id).returncode == 1


def test_codes_that_are_no_failure() -> None:
    done = run_cli("run", "--restart", "on-failure", "--success-codes", "0, 3", "-c", "exit 3")
    assert done.returncode == 3


def test_a_stop_command(tmp_path: Path) -> None:
    process_id = start("--stop-cmd", f"echo $HOLDFAST_ID > {tmp_path}/told", "sleep", "60")
    out("kill", process_id)
    assert (tmp_path / "told").read_text().strip() == process_id


def test_followed_over_a_restart(tmp_path: Path) -> None:
    command = f"cd {tmp_path}; echo x >> n; echo run $(wc -l < n); exit 1"
    process_id = start("--restart", "on-failure", "--restart-limit", "1", "--restart-delay", "0.5", "-c", command)
    assert out("logs", "-f", process_id) == "run 1\nrun 2\n"


@pytest.mark.parametrize(
    "words",
    [
        ["restart"],
        ["restart", "nobody"],
        ["restart", "--grace", "-1", "x"],
        ["run", "--restart", "maybe", "true"],
        ["run", "--restart", "always", "--restart-delay", "0", "true"],
        ["run", "--restart", "always", "--restart-limit", "-1", "true"],
        ["run", "--restart-limit", "3", "true"],
        ["run", "--success-codes", "0,x", "true"],
        ["run", "--success-codes", "999", "true"],
        ["run", "--success-codes", "", "true"],
        ["run", "--stop-cmd", " ", "true"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused(words: list[str]) -> None:
    refusal(*words)


def test_an_error_is_json_where_json_was_asked_for() -> None:
    done = run_cli("restart", "--json", "nobody")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (125, "not_found")
