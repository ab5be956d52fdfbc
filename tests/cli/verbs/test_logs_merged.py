"""`holdfast logs` of several processes, by time, with times and with colours."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

import holdfast
from holdfast.cli.output.prefixes import Prefixes
from tests.cli.calling import Terminal, as_json, out, refusal, start
from tests.support import eventually, run_cli

#: Prints each line that it is sent, later than 100 ms after the one before.
ECHO = ["--stdin", "-c", "while read x; do sleep 0.15; echo $x; done"]
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}"


@pytest.fixture
def hf(instance: Path) -> Iterator[holdfast.Client]:
    with holdfast.connect() as client:
        yield client


def say(hf: holdfast.Client, name: str, text: str) -> None:
    """A process prints a line."""
    before = hf.inspect(name).output_bytes or 0
    hf.send(name, text)
    hf.wait(name, until="output", after=before, timeout=15)


def end(*names: str) -> None:
    for name in names:
        run_cli("send", "--eof", name)
        run_cli("wait", name)


@pytest.fixture
def two(hf: holdfast.Client) -> Iterator[tuple[str, str]]:
    """Two processes that printed lines in turn."""
    names = "web", "worker"
    for name in names:
        start("--name", name, *ECHO)
    for number in range(3):
        for name in names:
            say(hf, name, f"{name} {number}")
    end(*names)
    yield names
    run_cli("rm", *names)


IN_TURN = "".join(f"{name.ljust(6)} | {name} {number}\n" for number in range(3) for name in ("web", "worker"))


@contextmanager
def following(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    call = [sys.executable, "-m", "holdfast", "logs", "-f", *arguments]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as view:
        try:
            yield view
        finally:
            view.kill()


def line_of(stream: IO[bytes] | None) -> str:
    assert stream is not None
    return stream.readline().decode()


def ends(process: subprocess.Popen[bytes]) -> tuple[str, str]:
    """What it still prints, once it has ended with success."""
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 0, stderr
    return stdout.decode(), stderr.decode()


def test_lines_are_in_the_order_of_time_and_have_names(two: tuple[str, str]) -> None:
    assert out("logs", *two) == IN_TURN
    assert out("logs", *reversed(two)).splitlines() == IN_TURN.splitlines()
    assert out("logs", "-n", "1", *two) == "web    | web 2\nworker | worker 2\n"
    assert out("logs", "web", "web") == "web 0\nweb 1\nweb 2\n"


def test_json_has_an_object_for_each_line(two: tuple[str, str]) -> None:
    before = time.time()
    found = [json.loads(line) for line in out("logs", "--json", *two).splitlines()]
    assert [one["text"] for one in found] == [line.partition("| ")[2] + "\n" for line in IN_TURN.splitlines()]
    assert set(found[0]) == {"process", "name", "stream", "offset", "text", "time"}
    assert [(one["name"], one["offset"], one["stream"]) for one in found[:3]] == [
        ("web", 0, "out"),
        ("worker", 0, "out"),
        ("web", 6, "out"),
    ]
    times = [one["time"] for one in found]
    assert times == sorted(times)
    assert before - 60 < times[0] < before


def test_times(two: tuple[str, str]) -> None:
    lines = out("logs", "-t", "web").splitlines()
    assert [re.sub(f"^{STAMP} ", "", line) for line in lines] == ["web 0", "web 1", "web 2"]
    assert all(re.match(f"{STAMP} ", line) for line in lines)
    shown = time.mktime(time.strptime(lines[0][:19], "%Y-%m-%dT%H:%M:%S"))
    assert abs(time.time() - shown) < 60
    assert re.match(rf"web    \| {STAMP} web 0\n", out("logs", "-t", *two))


def test_since_and_until(two: tuple[str, str]) -> None:
    found = [json.loads(line) for line in out("logs", "--json", *two).splitlines()]
    second = str(found[1]["time"] - 0.01)
    assert out("logs", "--since", second, *two) == "".join(IN_TURN.splitlines(keepends=True)[1:])
    assert out("logs", "--until", second, *two) == IN_TURN.splitlines(keepends=True)[0]
    third = f"{found[2]['time'] - 0.01}"
    assert out("logs", "web", "--since", third) == "web 1\nweb 2\n"
    assert out("logs", "web", "--since", third, "-n", "1") == "web 2\n"
    assert out("logs", "web", "--until", third) == "web 0\n"
    assert out("logs", "web", "--until", third, "-n", "5") == "web 0\n"
    assert out("logs", "web", "--since", third, "--bytes", "8") == "web 2\n"
    assert out("logs", "web", "--since", "1h") == "web 0\nweb 1\nweb 2\n"
    assert out("logs", "web", "--since", "0s") == ""
    assert out("logs", "web", "--until", "2001-01-01") == ""
    assert as_json("logs", "web", "--json", "--since", third)["text"] == "web 1\nweb 2\n"
    assert out("logs", "web", "--since", third, "--grep", "web") == "web 1\nweb 2\n"
    assert out("logs", "web", "--until", third, "--grep", "web", "--count") == "1\n"


def test_a_search_in_several(two: tuple[str, str]) -> None:
    assert out("logs", *two, "--grep", "[12]") == "".join(IN_TURN.splitlines(keepends=True)[2:])
    assert out("logs", *two, "--grep", "worker", "--count") == "web    | 0\nworker | 3\n"
    assert out("logs", *two, "--grep", "web 1", "-B1") == "web    | web 0\nweb    | web 1\n"
    timed = out("logs", *two, "--grep", "web 1", "-B1", "-t").splitlines()
    assert len({line.split("|")[1].split()[0] for line in timed}) == 2  # the line of context has its own time
    (found,) = [json.loads(line) for line in out("logs", *two, "--grep", "web 1", "--json").splitlines()]
    assert (found["name"], found["offset"], found["text"]) == ("web", 6, "web 1")
    assert found["time"] > 0
    assert out("logs", *two, "--grep", "e", "--limit", "1") == "web    | web 0\nworker | worker 0\n"


def test_following_ends_when_all_have_ended(hf: holdfast.Client) -> None:
    for name in ("a", "bcd"):
        start("--name", name, *ECHO)
    say(hf, "a", "before")
    with following("a", "bcd") as view:
        assert line_of(view.stdout) == "a   | before\n"
        say(hf, "bcd", "one")
        assert line_of(view.stdout) == "bcd | one\n"
        end("bcd")
        assert re.match(r"holdfast: proc_\w+ \(bcd\): exit 0 after", line_of(view.stderr))
        say(hf, "a", "two")
        assert line_of(view.stdout) == "a   | two\n"
        end("a")
        assert "(a): exit 0" in ends(view)[1]


def test_processes_that_start_meanwhile_are_taken_in(hf: holdfast.Client) -> None:
    for name, task in (("first", "t"), ("other", "u")):
        start("--name", name, "--task", task, *ECHO)
    with following("--task", "t", "-t") as view:
        say(hf, "first", "one")
        assert re.fullmatch(rf"first \| {STAMP} one\n", line_of(view.stdout))
        start("--name", "second", "--task", "t", "--split", "-c", "echo out; sleep 0.3; echo err >&2; printf end")
        assert "second started" in line_of(view.stderr)
        lines = [line_of(view.stdout) for _ in range(3)]
        assert {re.sub(STAMP, "T", line) for line in lines} == {
            "second | T out\n",
            "second | T err\n",
            "second | T end\n",
        }
        assert "(second): exit 0" in line_of(view.stderr)
        end("first")
        assert ends(view)[0] == ""
    end("other")


@pytest.mark.parametrize("search", [[], ["--grep", "."]], ids=["all lines", "search"])
def test_the_view_survives_a_kill_of_the_daemon(hf: holdfast.Client, search: list[str]) -> None:
    for name in ("a", "b"):
        start("--name", name, *ECHO)
    with following("--all", "--json", *search) as view:
        say(hf, "a", "one")
        assert json.loads(line_of(view.stdout))["text"].rstrip() == "one"
        for at in range(3):
            os.kill(as_json("daemon", "status", "--json")["pid"], signal.SIGKILL)
            for name, text in (("a", f"two {at}"), ("b", f"three {at}")):
                say(hf, name, text)
                assert json.loads(line_of(view.stdout))["text"].rstrip() == text
        end("a", "b")
        assert ends(view)[0] == ""


def test_a_search_is_followed_in_several(hf: holdfast.Client) -> None:
    for name in ("a", "b"):
        start("--name", name, *ECHO)
    with following("a", "b", "--grep", "x") as view:
        say(hf, "a", "ax")
        assert line_of(view.stdout) == "a | ax\n"
        say(hf, "b", "by")
        say(hf, "b", "bx")
        assert line_of(view.stdout) == "b | bx\n"
        end("a", "b")
        assert ends(view)[0] == ""


def test_all_of_a_session(hf: holdfast.Client) -> None:
    for session in ("s1", "s2"):
        process_id = start("--session", session, "--name", f"in-{session}", "-c", f"echo {session}")
        run_cli("wait", process_id)
    assert out("logs", "--session", "s1") == "in-s1 | s1\n"
    both = out("logs", "--all").splitlines()
    assert {"in-s1 | s1", "in-s2 | s2"} <= {re.sub(" +", " ", line) for line in both}
    done = run_cli("logs", "--session", "nobody")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"no process matches" in done.stderr
    assert b"no process that matches is running" in run_cli("logs", "-f", "--session", "nobody").stderr


def test_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text(
        '[project]\nname = "shop"\n'
        '[processes.web]\ncommand = "echo hello from web; exec sleep 1000"\n'
        '[processes.db]\ncommand = "echo hello from db; exec sleep 1000"\n'
    )
    monkeypatch.chdir(tmp_path)
    run_cli("up", "-d")
    try:
        expected = {"web | hello from web", "db  | hello from db"}
        eventually(lambda: set(out("logs", "--project", ".").splitlines()) == expected)
        assert set(out("logs", "--project", "shop").splitlines()) == expected
        assert out("logs", "--project", ".", "db") == "db | hello from db\n"
        assert "one of: " in refusal("logs", "--project", ".", "nothing")
    finally:
        run_cli("down")


@pytest.mark.full
def test_two_hundred_processes(hf: holdfast.Client) -> None:
    ids = [hf.run(f"echo {number}; sleep 1; echo end", task="many").id for number in range(200)]
    code = (
        "import sys, os; from holdfast.cli.main import main; main(sys.argv[1:]);"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)"
    )
    call = [sys.executable, "-c", code, "logs", "-f", "--task", "many"]
    done = subprocess.run(call, capture_output=True, timeout=120, check=True)
    *_, memory = done.stderr.decode().splitlines()
    assert int(memory) < 100 << 10
    hf.wait(ids)
    lines = run_cli("logs", "--task", "many", "-n", "1").stdout.decode().splitlines()
    assert len(lines) == 200
    assert all(line.endswith("| end") for line in lines)
    hf.remove(*ids)


def memory_of(pid: int) -> int:
    """In KiB."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


@pytest.mark.full
def test_a_reader_that_does_not_read_costs_no_memory(hf: holdfast.Client) -> None:
    names = [f"flood{number}" for number in range(8)]
    for name in names:
        start("--name", name, "--log-cap", "1M", "yes", "a line of some length")
    daemon = as_json("daemon", "status", "--json")["pid"]
    with following(*names) as view:
        line_of(view.stdout)
        before = memory_of(daemon)
        for name in names:
            hf.wait(name, until="output", after=(hf.inspect(name).output_bytes or 0) + (16 << 20), timeout=60)
        assert memory_of(view.pid) < 100 << 10
        assert memory_of(daemon) - before < 32 << 10


def test_a_log_without_an_index_shows_the_time_of_its_start(hf: holdfast.Client, instance: Path) -> None:
    process_id = start("-c", "echo one; sleep 1.5; echo two")
    run_cli("wait", process_id)
    eventually(lambda: (instance / "place/done" / process_id).exists())
    (instance / "place/done" / process_id / "out.times").unlink()
    done = run_cli("logs", "-t", process_id)
    first, second = done.stdout.decode().splitlines()
    assert first.split()[0] == second.split()[0]
    assert done.stderr.decode().count("only the time of its start is known") == 1
    # Nothing is left out by a time that is not known.
    assert out("logs", process_id, "--since", "10m") == "one\ntwo\n"


COLOURED = r"printf '\033[1;31mred\033[0m \033[?25l\033]0;title\007plain\n\033[32mgreen\n'"


def test_a_terminal_shows_the_colours_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    process_id = start("--name", "coloured", "-c", COLOURED)
    run_cli("wait", process_id)
    with Terminal("logs", process_id) as terminal:
        assert terminal.end() == 0
        seen = terminal.see("green\x1b[0m\r\n")
        assert seen == b"\x1b[1;31mred\x1b[0m plain\x1b[0m\r\n\x1b[32mgreen\x1b[0m\r\n"
    with Terminal("logs", "--task", "none", "-f") as terminal:
        assert terminal.end() == 0
    assert out("logs", process_id) == "red plain\ngreen\n"
    monkeypatch.setenv("NO_COLOR", "1")
    with Terminal("logs", process_id) as terminal:
        assert terminal.see("green\r\n") == b"red plain\r\ngreen\r\n"
    assert b"\x1b[?25l" in run_cli("logs", "--raw", process_id).stdout
    run_cli("rm", process_id)


def test_bytes_are_cut_to_whole_lines() -> None:
    process_id = start("seq", "1", "1000")
    run_cli("wait", process_id)
    done = run_cli("logs", process_id, "--from", "4", "--bytes", "5")
    assert done.stdout == b"3\n4\n"
    assert b"bytes 4 to 8 of 3893" in done.stderr
    assert as_json("logs", process_id, "--json", "--from", "4", "--bytes", "5")["text"] == "3\n4\n"
    assert out("logs", process_id, "-n", "3", "--bytes", "6") == "998\n"
    assert out("logs", process_id, "--bytes", "6") == "1000\n"
    assert out("logs", process_id, "--from", "3889", "--bytes", "2") == "00"  # a part of one longer line
    assert run_cli("logs", process_id, "--raw", "--from", "4", "--bytes", "5").stdout == b"3\n4\n5"


def test_names_cannot_draw_on_the_terminal() -> None:
    assert "\x1b" not in Prefixes(["a\x1b[2J"]).lines("a\x1b[2J", "text")


@pytest.mark.parametrize(
    "words",
    [
        ["no-such", "process"],
        ["--all", "ID"],
        ["--all", "--task", "t"],
        ["--all", "--raw"],
        ["ID", "-t", "--raw"],
        ["ID", "ID2", "--from", "5"],
        ["ID", "-t", "--bytes", "5"],
        ["--task", "t", "--line", "1"],
        ["ID", "--since", "yesterday"],
        ["ID", "--since", "-5"],
        ["ID", "--until", "9" * 400],
        ["ID", "--since", "2026-13-45"],
        ["ID", "-f", "--until", "5s"],
        ["ID", "--line", "1", "--since", "5s"],
        ["--project", "no such project"],
        ["--project", "\x1b[2J"],
        ["--task", ""],
        ["--session", "x" * 1000],
    ],
    ids=repr,
)
def test_invalid_arguments_are_refused(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    process_id = start("true")
    said = refusal("logs", *(process_id if word.startswith("ID") else word for word in words))
    assert "\x1b" not in said
