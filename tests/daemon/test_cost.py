"""What a short command costs, counted rather than timed: the counts are the same on a slow or a busy machine."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client.sync import Client

#: The bounds, for each `run` and `wait` of a command that does nothing.
MOST = {
    "calls in the daemon": 2_400.0,
    "commits of the store": 2.0,
    "writes of the daemon": 45.0,
    "bytes written by the daemon": 85_000.0,
    "context switches of the daemon": 50.0,
    "reads of the keeper": 20.0,
    "writes of the keeper": 8.0,
    "bytes written by the keeper": 14_000.0,
    "context switches of the keeper": 15.0,
}
_ROUNDS = 100
#: Counts the calls of functions, those in C too, in a file beside it.
_COUNTER = """
import mmap, os, sys, threading
with open(os.path.dirname(__file__) + "/counter", "r+b") as file:
    count = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
def add(frame, event, argument):
    if event.endswith("call"):
        count[0] += 1
threading.setprofile(add)
sys.setprofile(add)
"""


@pytest.fixture
def counter(home: Path, tmp_path: Path) -> Iterator[Path]:
    """A daemon that counts its calls: their number so far, as 8 bytes."""
    (tmp_path / "sitecustomize.py").write_text(_COUNTER)
    file = tmp_path / "counter"
    file.write_bytes(bytes(8))
    ready, write_end = os.pipe()
    words = [sys.executable, "-P", "-m", "holdfast.daemon", "--ready-fd", str(write_end)]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(words, env=env, pass_fds=[write_end], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT):
        os.close(write_end)
        with open(ready) as said:
            assert said.readline() == "ready\n"
        yield file


def test_a_short_command_costs_no_more_than_it_may(counter: Path, hf: Client, home: Path) -> None:
    _run(hf, 20)
    before = _counts(hf, home, counter)
    _run(hf, _ROUNDS)
    after = _counts(hf, home, counter)
    counts = {name: (after[name] - before[name]) / _ROUNDS for name in MOST}
    assert min(counts.values()) > 0, counts
    assert {name: count for name, count in counts.items() if count > MOST[name]} == {}, counts


def _run(hf: Client, rounds: int) -> None:
    for _ in range(rounds):
        assert hf.wait(hf.run(["/bin/true"]).id).exit_code == 0


def _counts(hf: Client, home: Path, counter: Path) -> dict[str, float]:
    status = hf.status()
    daemon, keeper = _io(status["pid"]), _io(status["keeper_pid"])
    return {
        "calls in the daemon": struct.unpack("=Q", counter.read_bytes())[0],
        "commits of the store": _commits(home / "store.db-shm"),
        "writes of the daemon": daemon["syscw"],
        "bytes written by the daemon": daemon["wchar"],
        "context switches of the daemon": _switches(status["pid"]),
        "reads of the keeper": keeper["syscr"],
        "writes of the keeper": keeper["syscw"],
        "bytes written by the keeper": keeper["wchar"],
        "context switches of the keeper": _switches(status["keeper_pid"]),
    }


def _commits(index: Path) -> int:
    """The change counter in the header of SQLite's WAL index: one for each transaction that wrote."""
    (counter,) = struct.unpack_from("=I", index.read_bytes(), 8)
    return int(counter)


def _io(pid: int) -> dict[str, int]:
    """Calls and bytes, of all threads, those that ended too. Sockets are counted only when they are read as files."""
    return {name: int(count) for name, count in _fields(f"/proc/{pid}/io").items()}


def _switches(pid: int) -> int:
    """How often the threads that are there gave up the processor to wait."""
    tasks = [f"/proc/{pid}/task/{task}/status" for task in os.listdir(f"/proc/{pid}/task")]
    return sum(int(_fields(task)["voluntary_ctxt_switches"]) for task in tasks)


def _fields(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8", errors="replace") as file:
        return dict(line.rstrip("\n").split(":", 1) for line in file)
