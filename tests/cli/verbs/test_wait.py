"""`holdfast wait`."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.cli.calling import as_json, refusal, start, until_waiting
from tests.support import run_cli


def test_the_code_of_the_command() -> None:
    process_id = start("--name", "three", "-c", "sleep 0.1; exit 3")
    done = run_cli("wait", process_id)
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.decode().startswith(f"holdfast: {process_id} (three): exit 3 after 0.")
    assert run_cli("wait", start("-c", "kill -9 $$")).returncode == 137
    assert run_cli("wait", start("true")).returncode == 0


def test_one_object_or_several() -> None:
    a, b = start("-c", "exit 0"), start("-c", "exit 2")
    assert as_json("wait", "--json", b, code=2)["exit_code"] == 2
    assert [process["id"] for process in as_json("wait", "--json", a, b, code=2)] == [a, b]


def test_of_several_the_first_code_that_is_not_zero() -> None:
    ids = [start("-c", f"exit {code}") for code in (0, 5, 4)]
    assert run_cli("wait", *ids).returncode == 5
    assert run_cli("wait", ids[2], ids[0], ids[1]).returncode == 4


def test_any() -> None:
    slow, quick = start("sleep", "60"), start("-c", "exit 6")
    done = run_cli("wait", "--any", slow, quick)
    assert done.returncode == 6
    assert slow.encode() not in done.stderr


def test_a_wait_that_runs_out() -> None:
    process_id = start("sleep", "60")
    began = time.monotonic()
    done = run_cli("wait", "--timeout", "0.2", process_id)
    assert done.returncode == 124
    assert time.monotonic() - began < 30
    assert b"still runs" in done.stderr
    assert f"holdfast kill {process_id}".encode() in done.stderr
    shown = as_json("wait", "--json", "--timeout", "100ms", process_id, code=124)
    assert shown["status"] == "running"
    assert run_cli("wait", "--timeout", "0", process_id).returncode == 124


def test_until_output() -> None:
    process_id = start("--stdin", "-c", "while read x; do echo $x; done")
    assert run_cli("wait", "--until", "output", "--timeout", "0.2", process_id).returncode == 124
    call = [sys.executable, "-m", "holdfast", "wait", "--until", "output", process_id]
    with subprocess.Popen(call) as waiting:
        until_waiting(waiting.pid)
        run_cli("send", process_id, "x")
        assert waiting.wait(20) == 0


def test_it_wakes_at_once() -> None:
    process_id = start("--stdin", "-c", "read x; exit 9")
    with subprocess.Popen([sys.executable, "-m", "holdfast", "wait", process_id], stderr=subprocess.DEVNULL) as waiting:
        until_waiting(waiting.pid)
        run_cli("send", process_id, "go")
        began = time.monotonic()
        assert waiting.wait(20) == 9
        assert time.monotonic() - began < 10


def test_an_interrupt_is_no_traceback_and_leaves_the_process() -> None:
    process_id = start("sleep", "60")
    call = [sys.executable, "-m", "holdfast", "wait", process_id]
    with subprocess.Popen(call, stderr=subprocess.PIPE) as waiting:
        until_waiting(waiting.pid)
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) == 130
        assert waiting.stderr is not None
        assert waiting.stderr.read() == b""
    assert as_json("inspect", "--json", process_id)["status"] == "running"


def test_until_a_line_matches() -> None:
    process_id = start("--stdin", "-c", "echo up; while read x; do printf '\\033[1mgot\\033[0m %s\\r\\n' $x; done")
    assert run_cli("wait", process_id, "--match", "^up$", "--from", "0").stdout == b"up\n"
    call = [sys.executable, "-m", "holdfast", "wait", process_id, "--until", "match", "--match", "^got 3$"]
    with subprocess.Popen(call, stdout=subprocess.PIPE) as waiting:
        for n in range(100):
            run_cli("send", process_id, str(n))
            if waiting.poll() is not None:
                break
            if n == 9:
                run_cli("send", process_id, "3")
        assert waiting.communicate()[0] == b"got 3\n"
        assert waiting.returncode == 0
    found = as_json("wait", "--json", process_id, "--match", "GOT 3", "-i", "--from", "0")["match"]
    assert (found["text"], found["column"], found["length"], found["cut"]) == ("got 3", 0, 5, False)


def test_a_process_that_ends_before_it_matches_says_so_and_a_time_that_runs_out_is_124() -> None:
    process_id = start("-c", "echo no; exit 6")
    done = run_cli("wait", process_id, "--until", "match", "--match", "yes", "--from", "0", "--timeout", "20")
    assert done.returncode == 6
    assert b"no line matched" in done.stderr
    sleeper = start("-c", "echo yes; sleep 60")
    assert run_cli("wait", sleeper, "--match", "no", "--timeout", "0.2").returncode == 124
    either = run_cli("wait", "--any", process_id, sleeper, "--match", "yes", "--from", "0", "--timeout", "20")
    assert (either.returncode, either.stdout.decode()) == (0, f"{sleeper}: yes\n")
    both = run_cli("wait", process_id, sleeper, "--match", "yes", "--from", "0", "--timeout", "20")
    assert both.returncode == 6


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nobody"],
        ["--timeout", "-1", "ID"],
        ["--timeout", "nan", "ID"],
        ["--timeout", "1e999", "ID"],
        ["--timeout", "later", "ID"],
        ["--until", "ready", "ID"],
        ["--until", "", "ID"],
        ["ID", "nobody"],
        ["--any", "nobody"],
        ["--until", "match", "ID"],
        ["--until", "output", "--match", "x", "ID"],
        ["--match", "(?=x)", "ID"],
        ["--match", "", "ID"],
        ["--from", "0", "ID"],
    ],
    ids=" ".join,
)
def test_invalid_arguments_are_refused(words: list[str]) -> None:
    process_id = start("sleep", "60")
    refusal("wait", *(process_id if word == "ID" else word for word in words))
