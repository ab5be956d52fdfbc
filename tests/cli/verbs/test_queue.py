"""`holdfast queue`, and what other verbs say about processes that wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calling import as_json, out, refusal, start
from tests.support import eventually, run_cli

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


def test_run_says_what_a_process_waits_for_and_nothing_of_one_that_starts_at_once() -> None:
    first, said = queued("--queue", "build", "--name", "a", "--", "sleep", "300")
    assert said == ""
    second, said = queued("--queue", "build", "--name", "b", "--", "sleep", "301")
    assert said == f"holdfast: {second} waits in the queue build, behind 1 other\n"
    third, said = queued("--queue", "build", "--", "true")
    assert said == f"holdfast: {third} waits in the queue build, behind 2 others\n"
    eventually(lambda: is_running(first))
    after, said = queued("--after", "a", "--after-success", "b", "--", "true", "1")
    assert (
        said
        == f"holdfast: {after} waits for a ({first}), which runs, and for b ({second}), which waits to be started\n"
    )
    out("queue", "other", "--pause")
    paused, said = queued("--queue", "other", "--", "true", "2")
    assert said == f"holdfast: {paused} waits in the queue other, which is paused: holdfast queue other --resume\n"


def test_why_names_what_a_process_waits_for(home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("max_processes = 2\n")
    first, _ = queued("--queue", "build", "--name", "a", "--", "sleep", "300")
    second, _ = queued("--queue", "build", "--", "true")
    third, _ = queued("--queue", "build", "--after", "a", "--", "true")
    eventually(lambda: is_running(first))
    assert as_json("why", "--json", second)["details"] == ["1 process runs in the queue build, which is its limit"]
    found = as_json("why", "--json", third)
    assert found["summary"] == "It waits to be started in the queue build."
    assert found["details"] == [
        f"It waits for a ({first}), which runs",
        "1 process runs in the queue build, which is its limit",
        "1 process waits before it in the queue build",
    ]
    assert "holdfast queue build" in found["next"]
    out("queue", "build", "--pause")
    assert "- The queue build is paused: holdfast queue build --resume" in out("why", second)
    start("--", "sleep", "301")
    full, said = queued("--queue", "other", "--", "true", "1")
    assert said == f"holdfast: {full} waits because 2 processes run, which is the limit of all (max_processes)\n"
    assert "2 processes run, which is the limit of all (max_processes)" in out("why", full)


def test_queues_are_listed_with_the_processes_that_wait_without_one() -> None:
    first, _ = queued("--queue", "build", "--name", "a", "--", "sleep", "300")
    eventually(lambda: is_running(first))
    queued("--queue", "build", "--name", "b", "--after-success", "a", "--", "make", "b")
    queued("--queue", "build", "--", "make", "\x1b[2J")
    queued("--after", "a", "--", "true")
    rows = [line.split() for line in out("queue").splitlines()]
    assert rows[1:] == [["build", "1", "active", "1", "2"], ["-", "-", "-", "-", "1"]]
    assert [one["name"] for one in as_json("queue", "--json")] == ["build"]
    head, titles, *lines = out("queue", "build").splitlines()
    assert head == "build: active, limit 1"
    assert titles.split() == ["STATUS", "ID", "NAME", "AGE", "WAITS", "FOR", "COMMAND"]
    assert lines[0].startswith("running ") and first in lines[0] and lines[0].endswith("sleep 300")
    assert lines[1].startswith("waiting ") and " b " in lines[1] and lines[1].endswith(" a          make b")
    assert " its turn " in lines[2] and "\x1b" not in lines[2]


def test_a_queue_that_was_changed_stays_until_it_is_removed() -> None:
    out("queue", "typo", "--pause")
    waiting, _ = queued("--queue", "typo", "--", "true")
    assert "the queue typo has processes" in refusal("queue", "typo", "--remove")
    out("kill", waiting)
    assert "typo" in out("queue")
    assert out("queue", "typo", "--remove") == ""
    assert "typo" not in out("queue")
    assert "no queue 'typo'" in refusal("queue", "typo", "--remove")
    out("daemon", "stop")
    assert as_json("queue", "--json") == []


def test_a_verb_before_the_name_of_a_queue_is_explained() -> None:
    assert "holdfast queue build --pause" in refusal("queue", "pause", "build")
    assert "holdfast queue build --limit N" in refusal("queue", "parallel", "build")
    assert "--remove" in refusal("queue", "build", "--remove", "--pause")
    refusal("queue", "--remove")


def test_a_waiting_process_is_not_called_running() -> None:
    first = start("--name", "a", "--", "sleep", "300")
    out("queue", "build", "--pause")
    waiting, _ = queued("--queue", "build", "--name", "b", "--", "true")
    after, _ = queued("--after", "a", "--", "true", "1")
    for words in (["rm", "b"], ["kill", "-s", "HUP", "a", "b"], ["exec", "b", "--", "true"]):
        assert f"{waiting} waits to be started" in refusal(*words)
    assert f"{waiting} has the name b" in refusal("run", "--name", "b", "--", "false")
    assert (
        f"the same command already waits to be started in this directory: {waiting}"
        in queued("--queue", "build", "--", "true")[1]
    )
    assert "1 background process of this session still runs; 3 wait to be started" in out("digest")
    assert f"{waiting} b, waits to be started" in out("digest")
    assert "sent to 1" in out("kill", "-s", "CONT", "--all")
    assert out("kill", "b") == f"{waiting}: removed from the queue build\n"
    assert out("kill", after) == f"{after}: removed before it was started\n"
    assert out("kill", "b") == f"{waiting}: has already ended (killed)\n"
    assert is_running(first)


def test_inspect_shows_queue_and_awaited_processes() -> None:
    first = start("--name", "a", "--", "sleep", "300")
    out("queue", "build", "--limit", "2")
    queued("--queue", "build", "--name", "b", "--after", "a", "--", "true")
    shown = [line.split() for line in out("inspect", "b").splitlines()]
    assert ["queue", "build"] in shown and ["after", first] in shown
    assert not {"queue", "after"} & {line.split()[0] for line in out("inspect", "a").splitlines() if line}


def test_names_of_queues_are_completed() -> None:
    assert out("--complete", "queue", "") == "words\n"
    out("queue", "build", "--limit", "2")
    assert "build\t0 run, 0 wait" in out("--complete", "queue", "")
    assert "build\t" in out("--complete", "run", "--queue", "bu")
