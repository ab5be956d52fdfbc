"""Recordings for asciinema, from the command line and over HTTP: all of the output, and when it came."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.model.cast import CastWriter
from tests.dashboard.page import open_page
from tests.support import eventually, run_cli

FINISHED: dict[str, Any] = {
    "id": "proc_0123456789ab",
    "name": None,
    "command": "x",
    "pty": True,
    "cols": 80,
    "rows": 24,
}


def recorded(data: bytes) -> tuple[dict[str, Any], list[list[Any]]]:
    head, *events = map(json.loads, data.decode().splitlines())
    return head, events


def output(events: list[list[Any]]) -> str:
    return "".join(text for _, kind, text in events if kind == "o")


def exported(process: str, *options: str) -> tuple[dict[str, Any], list[list[Any]]]:
    done = run_cli("export", process, "--cast", *options)
    assert done.returncode == 0, done
    return recorded(done.stdout)


def test_a_terminal_with_its_times_and_sizes(instance: Path) -> None:
    with holdfast.connect() as client:
        command = (
            "printf 'one\\r\\n'; sleep 0.5; printf '\\033[31mtwo\\r\\n'; read x; printf 'thr\\303\\251e'; stty size"
        )
        process = client.run(command, pty=True, size=(100, 30), name="demo")
        eventually(lambda: "two" in client.logs(process.id).text)
        client.resize(process.id, 90, 20)
        client.send(process.id, "x", enter=True)
        client.wait(process.id, timeout=20)
        raw = client.logs(process.id, raw=True).data.decode()
    head, events = exported("demo")
    assert (head["version"], head["width"], head["height"], head["title"]) == (2, 100, 30, "demo")
    assert output(events) == raw and "thrée" in raw
    assert ["r", "90x20"] in [event[1:] for event in events]
    times = [event[0] for event in events]
    assert times == sorted(times) and times[0] == 0
    (two,) = [event[0] for event in events if event[1] == "o" and "two" in event[2]]
    assert 0.3 <= two <= 10


def test_output_without_a_terminal_begins_each_line_at_the_left(instance: Path, tmp_path: Path) -> None:
    with holdfast.connect() as client:
        process = client.run("printf 'a\\nb\\r\\nc\\377\\n'; echo d >&2", name="plain")
        client.wait(process.id, timeout=20)
    head, events = exported(process.id)
    assert (head["width"], head["height"]) == (80, 24)
    assert output(events) == "a\r\nb\r\nc\ufffd\r\nd\r\n"
    target = tmp_path / "x.cast"
    target.write_text("old")
    done = run_cli("export", process.id, "--cast", str(target))
    assert (done.returncode, done.stdout) == (0, b"")
    assert output(recorded(target.read_bytes())[1]) == output(events)
    assert os.listdir(tmp_path) == ["x.cast"]


def test_the_same_over_http(instance: Path) -> None:
    page, looking = open_page(), open_page("--read-only")
    with holdfast.connect() as client:
        process = client.run("seq 1 50000; sleep 0.3; echo last", split=True)
        client.wait(process.id, timeout=20)
    for one in (page, looking):
        reply = one.ask("GET", f"/api/v1/processes/{process.id}/cast")
        assert (reply.status, reply.headers["content-type"]) == (200, "application/x-asciicast")
        assert f'filename="{process.id}.cast"' in reply.headers["content-disposition"]
        assert recorded(reply.body) == exported(process.id)
    assert page.ask("GET", f"/api/v1/processes/{process.id}/cast?stream=err").status == 200
    assert page.ask("GET", "/api/v1/processes/nope/cast").status == 404
    assert page.ask("GET", f"/api/v1/processes/{process.id}/cast?stream=x").status == 400


def test_bytes_that_are_cut_between_pieces_and_times() -> None:
    data = "äöü→\r\n🎉x".encode()
    times = [{"offset": at, "time": 10.0 + at} for at in range(len(data))]
    whole = CastWriter(FINISHED, times, 0)
    in_bytes = CastWriter(FINISHED, times, 0)
    lines = whole.feed(0, data) + whole.end()
    assert lines == b"".join(in_bytes.feed(at, data[at : at + 1]) for at in range(len(data))) + in_bytes.end()
    assert output(list(map(json.loads, lines.splitlines()))) == data.decode()


def test_a_log_without_its_beginning_and_without_times() -> None:
    later = CastWriter(FINISHED, [{"offset": 0, "time": 5.0}, {"offset": 100, "time": 9.0, "cols": 70, "rows": 9}], 200)
    head, events = recorded(later.header() + later.feed(200, b"x") + later.end())
    assert (head["timestamp"], head["width"], events) == (9, 70, [[0.0, "o", "x"]])
    unknown = CastWriter({**FINISHED, "pty": False}, [], 0)
    assert recorded(unknown.header() + unknown.feed(0, b"a\r") + unknown.feed(2, b"\nb\n"))[1] == [
        [0.0, "o", "a\r"],
        [0.0, "o", "\nb\r\n"],
    ]


@pytest.mark.parametrize(
    "words", [["nope", "--cast"], ["--cast"], ["x"], ["a", "b", "c", "--cast"], ["nope", "--cast", "/nonexistent/x"]]
)
def test_what_cannot_be_exported(instance: Path, words: list[str], tmp_path: Path) -> None:
    failed = run_cli("export", *words)
    assert failed.returncode not in (0, 1) and failed.stdout == b""
    assert failed.stderr.count(b"\n") == 1 and b"Traceback" not in failed.stderr


def test_a_long_log_takes_no_more_memory_than_a_short_one(instance: Path) -> None:
    with holdfast.connect() as client:
        process = client.run("head -c 200000000 /dev/zero | tr '\\0' 'x'", log_cap="1G")
        client.wait(process.id, timeout=60)
    limit = 150 << 20  # of its address space, where Python itself takes a part
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "export", process.id, "--cast", "/dev/null"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done
