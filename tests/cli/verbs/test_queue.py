"""`holdfast queue`, and what other verbs say about processes that wait."""

from __future__ import annotations

import pytest

from tests.cli.calling import as_json, out, start
from tests.support import run_cli

pytestmark = pytest.mark.usefixtures("home")


def queued(*words: str) -> tuple[str, str]:
    """The id of a process, and what the call said on stderr."""
    done = run_cli("run", *words)
    assert done.returncode == 0, done
    return done.stdout.decode().strip(), done.stderr.decode()


def is_running(process_id: str) -> bool:
    return bool(as_json("inspect", "--json", process_id)["status"] == "running")


def test_a_restart_runs_at_once_also_in_a_paused_queue_and_says_so() -> None:
    first, _ = queued("--queue", "build", "--", "true")
    run_cli("wait", first)
    out("queue", "build", "--pause")
    done = run_cli("restart", first)
    assert (done.returncode, done.stdout.decode()) == (0, f"{first}\n")
    assert b"a restart does not wait in the queue build" in done.stderr
    assert run_cli("restart", start("--", "true")).stderr == b""
