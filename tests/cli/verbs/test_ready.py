"""`--ready-…`, `--stall` and `wait --until ready` from the command line."""

from __future__ import annotations

import sys

import pytest

from tests.cli.calling import as_json, out, refusal, start
from tests.support import eventually, free_port, run_cli

SERVE = (sys.executable, "-m", "http.server", "--bind", "127.0.0.1")


def test_a_server_that_is_ready() -> None:
    port = str(free_port())
    process_id = start("--name", "web", "--ready-port", port, "--", *SERVE, port)
    done = run_cli("wait", "--until", "ready", "web")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode() == f"holdfast: {process_id} (web) is ready\n"
    assert as_json("wait", "--json", "--until", "ready", process_id)["ready"] is True
    assert as_json("inspect", "--json", process_id)["ready_at"] > 0


def test_started_and_waited_for_in_one_go() -> None:
    port = str(free_port())
    url = f"http://127.0.0.1:{port}/"
    shown = as_json("run", "-d", "--json", "--wait-ready", "--ready-http", url, "--", *SERVE, port)
    assert shown["ready"] is True
    assert out("run", "-d", "--wait-ready", "--ready-uptime", "100ms", "sleep", "60").startswith("proc_")
    assert run_cli("run", "-d", "--wait-ready", "--ready-log", "x", "-c", "exit 3").returncode == 3


def test_one_that_ended_first_is_reported_with_its_code_and_never_as_ready() -> None:
    for code, told in ((3, 3), (0, 125)):
        process_id = start("--ready-log", "never", "-c", f"exit {code}")
        done = run_cli("wait", "--until", "ready", process_id)
        assert done.returncode == told
        assert f"{process_id}: exit {code}" in done.stderr.decode()
        assert "before it was ready" in done.stderr.decode()
    assert run_cli("wait", "--until", "ready", start("--ready-port", "1", "-c", "kill -9 $$")).returncode == 137


def test_time_runs_out() -> None:
    process_id = start("--ready-log", "never", "sleep", "60")
    done = run_cli("wait", "--until", "ready", "--timeout", "0.2", process_id)
    assert done.returncode == 124
    assert b"still runs" in done.stderr
    late = start("--ready-log", "never", "--ready-timeout", "100ms", "sleep", "60")
    done = run_cli("wait", "--until", "ready", late)
    assert done.returncode == 124
    assert f"{late} is not ready within 0.1 s; it still runs" in done.stderr.decode()


def test_in_the_foreground_nothing_changes() -> None:
    done = run_cli("run", "--ready-log", "^hello$", "--stall", "5", "-c", "echo hello; exit 3")
    assert (done.returncode, done.stdout) == (3, b"hello\n")


def test_a_stalled_one_is_shown() -> None:
    process_id = start("--stall", "200ms", "sleep", "60")
    eventually(lambda: as_json("inspect", "--json", process_id)["stalled"])
    assert "stalled" in out("inspect", process_id)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--ready-log", "("),
        ("--ready-port", "99999"),
        ("--ready-port", "http"),
        ("--ready-http", "nowhere"),
        ("--ready-uptime", "soon"),
        ("--ready-timeout", "5"),
        ("--ready-log", "x", "--ready-port", "80"),
        ("--stall", "0"),
        ("--wait-ready",),
    ],
)
def test_what_cannot_be_meant(arguments: tuple[str, ...]) -> None:
    refusal("run", "-d", *arguments, "true")


def test_a_process_of_a_queue_can_be_awaited_without_d() -> None:
    assert out("run", "--queue", "q", "--wait-ready", "--ready-log", "up", "-c", "echo up; sleep 60").startswith(
        "proc_"
    )
    assert refusal("run", "--queue", "q", "--wait-ready", "true").endswith("Next: add --ready-port N\n")


def test_nothing_to_be_ready_by() -> None:
    assert "nothing to be ready by" in refusal("wait", "--until", "ready", start("sleep", "60"))
