"""Crashes: what lives is found again, what ended is told truly, and nothing is run twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.client.sync import Client, connect
from tests.daemon.acting import is_alive, kill_daemon, kill_keeper, log_text, told
from tests.support import eventually, never


def counting(go: Path) -> str:
    """Writes forty lines, the last of them and its end not before the file `go` is there."""
    count = "for i in $(seq {} {}); do echo line $i; sleep 0.02; done"
    return f"{count.format(1, 30)}; until [ -e {go} ]; do sleep 0.01; done; {count.format(31, 40)}; exit 7"


def test_a_crash_of_the_daemon_changes_nothing_for_a_process(hf: Client, tmp_path: Path) -> None:
    process = hf.run(counting(tmp_path / "go"), name="job", task="t")
    kill_daemon(hf)
    found = hf.inspect(process.id)
    assert told(found) == told(process)
    (tmp_path / "go").touch()
    ended = hf.wait(process.id, timeout=20)
    assert (ended.reason, ended.exit_code) == ("exited", 7)
    assert hf.logs(process.id).text == "".join(f"line {number}\n" for number in range(1, 41))


def test_two_crashes_in_a_row_change_nothing_either(hf: Client) -> None:
    process = hf.run("sleep 1; exit 3")
    for _ in range(2):
        kill_daemon(hf)
    assert hf.wait(process.id, timeout=20).exit_code == 3


def test_an_end_while_the_daemon_is_dead_is_reported_with_its_true_code(hf: Client, home: Path, tmp_path: Path) -> None:
    process = hf.run(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; exit 9")
    pid = hf.status()["pid"]
    os.kill(pid, signal.SIGSTOP)  # a stopped one is not revived: it is dead to the world for as long as we like
    (tmp_path / "go").touch()
    eventually((home / "place" / "done" / process.id).exists)
    os.kill(pid, signal.SIGKILL)
    ended = hf.inspect(process.id)
    assert (ended.status, ended.exit_code) == ("ended", 9)


@pytest.mark.parametrize("roles", [("keeper",), ("anchor",), ("keeper", "anchor")])
def test_a_crash_of_the_keeper_is_not_noticed(hf: Client, tmp_path: Path, roles: tuple[str, ...]) -> None:
    process = hf.run(counting(tmp_path / "go"))
    typed = hf.run("read x; echo got $x; exit 5", pty=True)
    kill_keeper(hf, *roles)
    assert hf.inspect(process.id).status == "running"
    (tmp_path / "go").touch()
    assert hf.send(typed.id, "this")["status"] == "sent"
    assert hf.wait(typed.id, timeout=20).exit_code == 5
    assert hf.wait(process.id, timeout=20).exit_code == 7
    assert hf.logs(process.id).text == "".join(f"line {number}\n" for number in range(1, 41))
    assert hf.run("exit 0").status in ("running", "ended")


def test_daemon_and_keeper_at_once(hf: Client) -> None:
    process = hf.run("for i in $(seq 1 40); do echo line $i; sleep 0.02; done; exit 7", pty=True)
    status = hf.status()
    for role in ("pid", "keeper_pid"):
        os.kill(status[role], signal.SIGKILL)
    assert hf.wait(process.id, timeout=20).exit_code == 7
    assert hf.logs(process.id).text == "".join(f"line {number}\n" for number in range(1, 41))


def test_everything_of_ours_at_once(hf: Client) -> None:
    process = hf.run("for i in $(seq 1 100); do echo line $i; sleep 0.02; done; exit 7")
    kill_all_of_ours(hf)
    assert hf.wait(process.id, timeout=20).exit_code == 7
    assert hf.logs(process.id).text == "".join(f"line {number}\n" for number in range(1, 101))


def test_a_kill_goes_on_over_a_crash_of_the_keeper(hf: Client, tmp_path: Path) -> None:
    process = hf.run("trap '' TERM; touch up; while :; do sleep 0.1; done", cwd=tmp_path)
    eventually((tmp_path / "up").exists)
    link = hf.open_link()
    rid = link.ask("kill", {"processes": [process.id], "grace": 0.5})
    eventually(lambda: hf.inspect(process.id).killed_by == "tests")
    kill_keeper(hf, "keeper")
    (answer,) = link.receive(20)
    assert answer.rid == rid
    link.close()
    killed = hf.inspect(process.id)
    assert (killed.reason, killed.signal, killed.forced) == ("killed", signal.SIGKILL, True)


def test_a_daemon_that_dies_is_brought_back_by_the_keeper(hf: Client, home: Path) -> None:
    hf.run("sleep 60", deadline=0.6, deadline_action="notify")
    kill_daemon(hf)
    eventually(lambda: "deadline process=" in log_text(home))


FAILING = """
from holdfast.daemon import __main__
from holdfast.daemon.core import timers
async def fail(context):
    raise RuntimeError("failed")
timers.watch_deadlines = fail
__main__.main()
"""


def test_a_daemon_that_failed_is_brought_back_by_the_keeper(home: Path) -> None:
    failed = subprocess.run([sys.executable, "-c", FAILING], capture_output=True, timeout=30, check=False)
    assert failed.returncode == 1 and b"RuntimeError: failed" in failed.stderr
    eventually((home / "daemon.sock").exists)


def test_a_daemon_that_was_stopped_on_purpose_is_not_brought_back(hf: Client, home: Path) -> None:
    process = hf.run("sleep 60")
    pid = hf.status()["pid"]
    hf.stop_daemon()
    eventually(lambda: not is_alive(pid))
    never((home / "daemon.sock").exists, within=0.5)  # longer than the keeper waits before it brings one back
    assert [found.pid for found in hf.ps()] == [process.pid]


def test_a_lost_store_is_made_again_from_the_bundles(hf: Client, home: Path) -> None:
    running = hf.run("sleep 60", name="web", task="t", lifetime="session", session="mine", pty=True)
    ended = hf.wait(hf.run("echo out; exit 3").id)
    pid = hf.status()["pid"]
    hf.stop_daemon()
    eventually(lambda: not is_alive(pid))
    (home / "store.db").write_bytes(b"broken" * 1000)
    again = {process.id: process for process in hf.ps(all=True)}
    assert told(again[running.id]) == told(running)
    assert again[ended.id].to_json() == ended.to_json()
    (aside,) = home.glob("store.db.corrupt-*")
    assert aside.read_bytes() == b"broken" * 1000
    assert "store-set-aside" in log_text(home)


def kill_all_of_ours(hf: Client) -> None:
    """At once: stopped first, so that none of them sees another one die."""
    status = hf.status()
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for role in ("pid", "keeper_pid", "anchor_pid"):
            os.kill(status[role], number)


def test_a_process_without_a_bundle_is_lost_and_not_run_again(hf: Client, home: Path) -> None:
    process = hf.run("sleep 60")
    assert list(hf.events())  # what is read is on disk, and the row with it
    kill_all_of_ours(hf)
    os.rename(home / "place" / "live" / process.id, home / "elsewhere")
    try:
        lost = hf.inspect(process.id)
        told = (lost.status, lost.reason, lost.exit_code, lost.signal)
        assert told == ("ended", "lost", None, None)
        assert (lost.ended_at or 0) >= (process.started_at or 0) > 0, "when the loss was seen"
    finally:
        os.kill(int(process.pid or 0), signal.SIGKILL)


def test_a_process_from_before_the_last_boot_is_lost(hf: Client, home: Path) -> None:
    process = hf.run("sleep 60")
    kill_all_of_ours(hf)
    state = home / "place" / "live" / process.id / "state"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    state.write_bytes(state.read_bytes().replace(boot.encode(), b"0" * len(boot)))
    try:
        lost = hf.inspect(process.id)
        assert (lost.status, lost.reason) == ("ended", "lost")
        assert is_alive(int(process.pid or 0)), "a process of this boot with the same number is not touched"
    finally:
        os.kill(int(process.pid or 0), signal.SIGKILL)


def test_a_hundred_rows_do_not_hold_up_a_start(home: Path) -> None:
    with connect() as hf:
        ids = [hf.run(["true"]).id for _ in range(100)]
        hf.wait(ids, timeout=60)
        kill_daemon(hf)
        began = time.monotonic()
        assert len(hf.ps(all=True)) == 100
        assert time.monotonic() - began < 30
        assert {process.exit_code for process in hf.ps(all=True)} == {0}
