"""What holdfast promises, seen through the command line as a user would. HOLDFAST_FULL=1 runs the large counts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.chaos.parts import ROLES, find
from tests.support import eventually, is_alive, processes_of, run_cli

FULL = bool(os.environ.get("HOLDFAST_FULL"))

LINES = "for i in $(seq 1 {count}); do echo line $i; sleep 0.005; done; exit 7"
EXPECTED = b"".join(b"line %d\n" % number for number in range(1, 401))


def start(*arguments: str) -> dict[str, Any]:
    done = run_cli("run", "-d", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def kill_ours(home: Path, *roles: str) -> None:
    def found() -> list[int]:
        return [pid for role in roles for pid in find(str(home), role)]

    eventually(lambda: len(found()) == len(roles))  # a keeper that starts its fork server is two for a moment
    for pid in found():
        os.kill(pid, signal.SIGKILL)


def log_bytes(home: Path) -> int:
    total = 0
    for directory, _, names in os.walk(home / "place"):
        for name in names:
            if re.fullmatch(r"(out|err)\.\d+", name):
                try:
                    total += os.stat(f"{directory}/{name}").st_size
                except FileNotFoundError:
                    continue
    return total


def test_everything_but_the_command_is_killed_and_nothing_is_lost(home: Path) -> None:
    process = start("-c", LINES.format(count=400))
    kill_ours(home, *ROLES)
    assert run_cli("wait", process["id"]).returncode == 7
    assert run_cli("logs", "--raw", process["id"]).stdout == EXPECTED


@pytest.mark.parametrize("roles", [("daemon", "keeper"), ("daemon", "anchor"), ("keeper", "anchor")])
def test_on_a_terminal_any_two_are_killed_and_nothing_is_lost(home: Path, roles: tuple[str, str]) -> None:
    process = start("-t", "-c", LINES.format(count=400))
    kill_ours(home, *roles)
    assert run_cli("wait", process["id"]).returncode == 7
    assert run_cli("logs", "--raw", process["id"]).stdout.replace(b"\r\n", b"\n") == EXPECTED


def test_a_grandchild_does_not_keep_a_finished_command_running(home: Path) -> None:
    process = start("--", "bash", "-c", "sleep 300 & echo hi; exit 4")
    with holdfast.connect() as client:
        eventually(lambda: client.inspect(process["id"]).status == "ended")
        ended = client.inspect(process["id"])
    assert (ended.reason, ended.exit_code) == ("exited", 4)
    (leftover,) = ended.leftover_pids
    assert is_alive(leftover)
    assert run_cli("kill", process["id"]).returncode == 0
    assert not is_alive(leftover)


def test_a_command_that_closes_its_output_runs_until_it_ends(home: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    process = start("-c", f"exec >/dev/null 2>&1; until [ -e '{go}' ]; do sleep 0.05; done; exit 7")
    timed_out = run_cli("wait", process["id"], "--timeout", "1")
    assert timed_out.returncode == 124
    go.touch()
    assert run_cli("wait", process["id"]).returncode == 7


def test_a_tree_with_an_escaped_stubborn_member_is_killed_whole(home: Path) -> None:
    stubborn = "trap '' TERM; while :; do sleep 1; done"
    process = start(
        "-c", f'(setsid bash -c "({stubborn}) & {stubborn}" &); trap "exit 42" TERM; echo up; sleep 300 & wait'
    )
    with holdfast.connect() as client:
        eventually(lambda: client.inspect(process["id"]).output_bytes)
    members = [pid for pid in _marked(process["id"]) if is_alive(pid)]
    assert len(members) >= 3
    killed = json.loads(run_cli("kill", process["id"], "--grace", "0.5", "--json").stdout)
    assert killed["forced"] and killed["survivors"] == []
    assert not any(is_alive(pid) for pid in [*members, *_marked(process["id"])])
    ended = json.loads(run_cli("inspect", process["id"], "--json").stdout)
    assert (ended["reason"], ended["exit_code"], ended["signal"]) == ("killed", 42, None)


def _marked(process_id: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if f"HOLDFAST_ID={process_id}".encode() in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
            except OSError:
                continue
    return found


def test_a_flood_stays_within_its_cap_though_the_daemon_is_killed(home: Path) -> None:
    process = start("--log-cap", "10M", "-c", "yes")
    largest = 0
    with holdfast.connect() as client:

        def has_written(size: int) -> bool:
            nonlocal largest
            largest = max(largest, log_bytes(home))
            return bool(client.inspect(process["id"]).output_bytes > size)

        eventually(lambda: has_written(200 << 20), timeout=60)
        kill_ours(home, "daemon")
        eventually(lambda: has_written((20000 if FULL else 600) << 20), timeout=120)
        client.kill(process["id"])
        ended = client.inspect(process["id"])
        kept = client.logs(process["id"], offset=ended.dropped_bytes, bytes=8, raw=True)
    assert 5 << 20 < largest <= 10 << 20
    assert ended.output_bytes - ended.dropped_bytes <= 10 << 20
    assert (kept.start, kept.data) == (
        ended.dropped_bytes,
        b"y\ny\ny\ny\n" if not ended.dropped_bytes % 2 else b"\ny\ny\ny\ny",
    )


@pytest.fixture
def client(home: Path) -> Iterator[holdfast.Client]:
    with holdfast.connect() as client:
        yield client


def test_many_are_held_at_once(home: Path, client: holdfast.Client) -> None:
    count = 1000 if FULL else 200
    ids = {client.run(["sleep", "300"]).id for _ in range(count)}
    assert {process.id for process in client.ps()} == ids
    kill_ours(home, "keeper")
    assert {process.id for process in client.ps() if process.status == "running"} == ids
    results = client.kill(all=True, grace=5)
    assert {result.id for result in results} == ids
    assert all(result.survivors == [] for result in results)


#: Threads that pools add when they are first needed, and keep.
_POOLS = 8


def _terminals_of(pid: int) -> int:
    """How many ends of terminals a process has open: for as long as there is one, there is the terminal."""
    try:
        fds = [os.path.realpath(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return 0
    return sum(fd.startswith(("/dev/pts/", "/dev/ptmx")) for fd in fds)


def test_many_short_jobs_leave_nothing_behind(home: Path, client: holdfast.Client) -> None:
    count = 2000 if FULL else 200

    def jobs(number: int) -> None:
        ids = [client.run("echo x", pty=bool(job % 2)).id for job in range(number)]
        assert all(process.exit_code == 0 for process in client.wait(ids, timeout=60))

    def at_rest() -> tuple[int, ...]:
        pids = [find(str(home), role)[0] for role in ROLES]
        descriptors = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
        threads = sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids)
        return descriptors, threads, sum(map(_terminals_of, processes_of(str(home))))

    jobs(40)
    eventually(lambda: not client.ps())
    eventually(lambda: at_rest() == at_rest())
    before = at_rest()
    jobs(count)
    allowed = (before[0], before[1] + _POOLS, before[2])
    eventually(lambda: all(now <= then for now, then in zip(at_rest(), allowed, strict=True)), timeout=20)
    zombies = [pid for pid in _children_of(find(str(home), "keeper")[0]) if not is_alive(pid)]
    assert zombies == []


def _children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_last_line_on_a_terminal_is_always_there(home: Path, client: holdfast.Client) -> None:
    for _ in range(200 if FULL else 20):
        process = client.run("seq 1 20000", pty=True)
        client.wait(process.id)
        assert client.logs(process.id, lines=1).text == "20000\n"
        client.remove(process.id)


def test_fifty_first_calls_start_one_daemon(home: Path) -> None:
    calls = [
        subprocess.Popen([sys.executable, "-m", "holdfast", "run", "-d", "--", "true"], stdout=subprocess.PIPE)
        for _ in range(50)
    ]
    ids = {call.communicate()[0].strip() for call in calls}
    assert len(ids) == 50 and all(call.returncode == 0 for call in calls)
    assert len(find(str(home), "daemon")) == len(find(str(home), "keeper")) == 1
