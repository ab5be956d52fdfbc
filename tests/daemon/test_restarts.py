"""Processes that are run again, by their policy or by hand, with a real daemon and keeper."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from holdfast.client.process import Process
from holdfast.client.sync import Client, connect
from holdfast.errors import HoldfastError, NotNow, StdinFull
from tests.daemon.acting import ask, is_alive, kill_daemon, kill_keeper, log_text
from tests.support import eventually, fill_disk, small_disk_at

#: Its own number of starts is what it ends with.
COUNTING = "n=$(($(cat times 2>/dev/null || echo 0) + 1)); echo $n > times; echo run $n; exit $n"


def times(directory: Path) -> int:
    try:
        return int((directory / "times").read_text() or 0)
    except FileNotFoundError:
        return 0


def until_waiting(hf: Client, process_id: str, run: int = 0) -> Process:
    """The process once it is between this run and the next."""

    def waiting() -> Process | None:
        now = hf.inspect(process_id)
        return now if now.restart_at is not None and now.restarts == run else None

    return eventually(waiting)


def test_a_crash_loop_backs_off_gives_up_and_says_so_once(hf: Client, home: Path, tmp_path: Path) -> None:
    process = hf.run(COUNTING, cwd=tmp_path, restart="on-failure", restart_limit=3, restart_delay=0.05)
    ended = hf.wait(process.id, timeout=20)
    assert (ended.status, ended.exit_code, ended.restarts, ended.gave_up) == ("ended", 4, 3, True)
    assert hf.logs(process.id).text == "run 1\nrun 2\nrun 3\nrun 4\n"
    assert log_text(home).count(f"gave-up process={process.id}") == 1
    kill_daemon(hf)
    again = hf.inspect(process.id)
    assert (again.exit_code, again.restarts, again.gave_up, times(tmp_path)) == (4, 3, True, 4)
    assert log_text(home).count(f"gave-up process={process.id}") == 1


def test_a_success_ends_it_and_some_codes_are_one(hf: Client, tmp_path: Path) -> None:
    options = {"restart": "on-failure", "restart_delay": 0.02, "cwd": tmp_path}
    process = hf.run(COUNTING, success_codes=[0, 3], **options)  # type: ignore[arg-type]
    ended = hf.wait(process.id, timeout=20)
    assert (ended.exit_code, ended.reason, ended.restarts, ended.gave_up) == (3, "exited", 2, False)


def test_between_two_runs_it_lives_without_a_pid(hf: Client) -> None:
    process = hf.run("echo once; exit 3", restart="always", restart_delay=60.0, name="web", deadline=1000.0)
    waiting = until_waiting(hf, process.id)
    assert (waiting.status, waiting.pid, waiting.reason, waiting.exit_code) == ("restarting", None, None, None)
    assert waiting.deadline_at is None
    assert [found.id for found in hf.ps()] == [process.id]
    assert hf.wait(process.id, timeout=0.05).status == "restarting"
    with pytest.raises(NotNow):
        hf.remove(process.id)
    with pytest.raises(NotNow):
        hf.run("true", name="web")
    with pytest.raises(StdinFull):
        hf.send(process.id, "x")
    (signalled,) = hf.kill(process.id, signal="HUP")
    assert (signalled.status, signalled.sent) == ("running", 0)
    (result,) = hf.kill(process.id)
    assert (result.status, result.reason, result.exit_code) == ("ended", "killed", 3)
    killed = hf.inspect(process.id)
    assert (killed.reason, killed.exit_code, killed.killed_by, killed.restarts) == ("killed", 3, "tests", 0)


def test_a_kill_between_two_runs_outlives_a_lost_store(hf: Client, home: Path) -> None:
    process = hf.run("exit 3", restart="always", restart_delay=60.0)
    eventually(lambda: hf.inspect(process.id).restart_at)
    hf.kill(process.id)
    pid = hf.status()["pid"]
    hf.stop_daemon()
    eventually(lambda: not is_alive(pid))
    (home / "store.db").unlink()
    found = hf.inspect(process.id)
    assert (found.status, found.reason, found.exit_code) == ("ended", "killed", 3)


@pytest.mark.parametrize("how", ["kill", "deadline", "session"])
def test_what_was_ended_on_purpose_is_not_run_again(hf: Client, tmp_path: Path, how: str) -> None:
    options = {"restart": "always", "restart_delay": 0.01, "cwd": tmp_path, "session": "s", "lifetime": "session"}
    deadline = 2.0 if how == "deadline" else None
    process = hf.run("echo x >> starts; echo up; sleep 60", deadline=deadline, **options)  # type: ignore[arg-type]
    hf.wait(process.id, until="output", after=0, timeout=60)
    if how == "kill":
        hf.kill(process.id)
    elif how == "session":
        hf.end_session("s")
    ended = hf.wait(process.id, timeout=20)
    assert ended.reason == ("deadline" if how == "deadline" else "killed")
    assert (ended.restarts, (tmp_path / "starts").read_text()) == (0, "x\n")


def test_a_deadline_counts_per_run(hf: Client, tmp_path: Path) -> None:
    command = f"{COUNTING.replace('exit $n', '[ $n -lt 3 ] && exit 1; sleep 60')}"
    process = hf.run(command, cwd=tmp_path, restart="always", restart_delay=0.6, deadline=1.6)
    ended = hf.wait(process.id, timeout=20)
    assert (ended.reason, ended.restarts, times(tmp_path)) == ("deadline", 2, 3)


def test_a_crash_of_the_daemon_during_the_pause_changes_nothing(hf: Client, tmp_path: Path) -> None:
    process = hf.run(COUNTING, cwd=tmp_path, restart="on-failure", restart_limit=2, restart_delay=1.0)
    for run in (0, 1):
        until_waiting(hf, process.id, run)
        kill_daemon(hf)
    ended = hf.wait(process.id, timeout=20)
    assert (ended.exit_code, ended.restarts, ended.gave_up, times(tmp_path)) == (3, 2, True, 3)


@pytest.mark.parametrize("roles", [("keeper",), ("keeper", "anchor")])
def test_nor_does_one_of_the_keeper(hf: Client, tmp_path: Path, roles: tuple[str, ...]) -> None:
    process = hf.run(COUNTING, cwd=tmp_path, restart="on-failure", restart_limit=2, restart_delay=0.8)
    eventually(lambda: hf.inspect(process.id).restart_at)
    kill_keeper(hf, *roles)
    ended = hf.wait(process.id, timeout=30)
    assert (ended.exit_code, ended.restarts, times(tmp_path)) == (3, 2, 3)
    assert hf.logs(process.id).text == "run 1\nrun 2\nrun 3\n"


@pytest.mark.parametrize(
    "point", ["rerun-state-aside", "rerun-files-made", "start-requested", "child-ready", "start-seen"]
)
def test_nor_does_one_in_the_middle_of_a_restart(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    died = tmp_path / "died"
    died.touch()
    monkeypatch.setenv("HOLDFAST_DIE_AT", point)
    monkeypatch.setenv("HOLDFAST_DIE_MARK", str(died))
    with connect("tests") as hf:
        process = hf.run(COUNTING, cwd=tmp_path, restart="on-failure", restart_limit=2, restart_delay=0.8)
        until_waiting(hf, process.id)
        died.unlink()
        ended = hf.wait(process.id, timeout=30)
        assert died.exists()
        assert (ended.exit_code, ended.restarts, ended.gave_up, times(tmp_path)) == (3, 2, True, 3)
        assert hf.logs(process.id).text == "run 1\nrun 2\nrun 3\n"


def test_an_end_while_the_daemon_is_dead_is_followed_by_a_restart(hf: Client, home: Path, tmp_path: Path) -> None:
    process = hf.run(f"until [ -e go ]; do sleep 0.01; done; {COUNTING}", cwd=tmp_path, restart="always")
    pid = hf.status()["pid"]
    os.kill(pid, signal.SIGSTOP)
    (tmp_path / "go").touch()
    eventually((home / "place" / "done" / process.id).exists)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: times(tmp_path) >= 2)
    hf.kill(process.id)


def test_one_that_cannot_be_started_any_more_gives_up(hf: Client, tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    command = f"rmdir {room}; exit 7"
    process = hf.run(command, cwd=room, restart="on-failure", restart_limit=2, restart_delay=0.02)
    ended = hf.wait(process.id, timeout=20)
    assert (ended.exit_code, ended.gave_up, ended.restarts) == (7, True, 0)


def test_a_full_disk_uses_up_no_restart(tmp_path: Path, home: Path) -> None:
    with small_disk_at(home, "24m"), connect("tests") as hf:
        command = f"until [ -e go ]; do sleep 0.01; done; head -c 40000 /dev/zero; {COUNTING}"
        process = hf.run(command, cwd=tmp_path, restart="on-failure", restart_limit=3, restart_delay=0.1)
        ballast = fill_disk(home)
        (tmp_path / "go").touch()
        attempts = set()

        def were_put_off() -> bool:
            now = hf.inspect(process.id)
            assert now.status in ("running", "restarting"), now
            attempts.add(now.restart_at if now.trouble == "disk_full" else None)
            return len(attempts - {None}) >= 4

        eventually(were_put_off, timeout=20)
        ballast.unlink()
        ended = hf.wait(process.id, timeout=30)
        assert (ended.exit_code, ended.restarts, ended.gave_up, ended.trouble) == (4, 3, True, None)
        assert times(tmp_path) == 4
        hf.stop_daemon()


def test_a_reader_follows_over_restarts(hf: Client, tmp_path: Path) -> None:
    process = hf.run(COUNTING, cwd=tmp_path, restart="on-failure", restart_limit=2, restart_delay=0.1)
    data = b"".join(piece.data for piece in hf.follow(process.id))
    assert data == b"run 1\nrun 2\nrun 3\n"
    data = b"".join(piece.data for piece in hf.follow(process.id, until="closed"))
    assert data == b"run 1\nrun 2\nrun 3\n"


def test_who_waits_for_output_gets_that_of_the_next_run(hf: Client, tmp_path: Path) -> None:
    process = hf.run(COUNTING, cwd=tmp_path, restart="always", restart_delay=1.0)
    eventually(lambda: hf.inspect(process.id).restart_at)
    assert not hf.wait_for([process.id], until="output", after=6, timeout=60).timed_out
    assert hf.logs(process.id).text.startswith("run 1\nrun 2\n")
    hf.kill(process.id)


# By hand.


def test_a_running_one_is_ended_and_run_again(hf: Client, tmp_path: Path) -> None:
    process = hf.run("echo up; exec sleep 60", name="web", env={"A": "1"}, cwd=tmp_path)
    hf.wait(process.id, until="output", after=0, timeout=60)
    again = hf.restart("web")
    assert (again.id, again.name, again.status, again.restarts) == (process.id, "web", "running", 1)
    assert again.pid != process.pid
    assert not is_alive(int(process.pid or 0))
    eventually(lambda: hf.logs("web").text == "up\nup\n")
    assert hf.inspect("web").killed_by is None


def test_an_ended_one_is_simply_run_again(hf: Client, tmp_path: Path) -> None:
    process = hf.run(COUNTING, cwd=tmp_path)
    assert hf.wait(process.id, timeout=60).exit_code == 1
    for run in (1, 2):
        hf.restart(process)
        assert (ended := hf.wait(process.id, timeout=60)).exit_code == run + 1
        assert (ended.restarts, ended.gave_up) == (run, False)
    assert hf.logs(process.id).text == "run 1\nrun 2\nrun 3\n"


def test_a_killed_one_can_be_run_again_by_hand(hf: Client) -> None:
    process = hf.run("exit 3", restart="always", restart_delay=60.0)
    eventually(lambda: hf.inspect(process.id).restart_at)
    hf.kill(process.id)
    again = hf.restart(process.id)
    assert again.restarts == 1
    hf.kill(process.id)


def test_a_waiting_one_need_not_wait(hf: Client, tmp_path: Path) -> None:
    process = hf.run(COUNTING, cwd=tmp_path, restart="always", restart_delay=60.0)
    until_waiting(hf, process.id)
    hf.restart(process.id)
    eventually(lambda: times(tmp_path) == 2)
    eventually(lambda: hf.inspect(process.id).restart_at)
    hf.kill(process.id)


def test_a_name_that_was_taken_meanwhile(hf: Client) -> None:
    process = hf.run("true", name="web")
    hf.wait(process.id, timeout=60)
    other = hf.run("sleep 60", name="web")
    with pytest.raises(NotNow, match=other.id):
        hf.restart(process.id)
    assert hf.inspect(process.id).status == "ended"


def test_one_that_cannot_be_started_stays_ended(hf: Client, tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    process = hf.run("exit 3", cwd=room)
    hf.wait(process.id, timeout=60)
    room.rmdir()
    with pytest.raises(HoldfastError, match="cannot run in"):
        hf.restart(process.id)
    found = hf.inspect(process.id)
    assert (found.status, found.exit_code, found.restarts) == ("ended", 3, 0)


@pytest.mark.parametrize("state", ["running", "ended"])
def test_twenty_racing_restarts_end_in_one_instance(hf: Client, tmp_path: Path, state: str) -> None:
    process = hf.run("echo x >> starts; exec sleep 60", cwd=tmp_path)
    eventually((tmp_path / "starts").exists)
    if state == "ended":
        hf.kill(process.id)
    failures: list[Exception] = []

    def race() -> None:
        try:
            hf.restart(process.id)
        except HoldfastError as failed:
            failures.append(failed)

    racers = [threading.Thread(target=race) for _ in range(20)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert not failures
    now = hf.inspect(process.id)
    assert now.status == "running"
    eventually(lambda: _instances(process.id) == [now.pid])  # in the middle of an exec it cannot be told
    assert len((tmp_path / "starts").read_text().split()) <= (now.restarts or 0) + 1
    assert 1 <= (now.restarts or 0) <= 20


def _instances(process_id: str) -> list[int]:
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_ours(pid, process_id)]


def _is_ours(pid: int, process_id: str) -> bool:
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"HOLDFAST_ID={process_id}".encode() in environ.split(b"\0") and is_alive(pid)


def test_the_same_question_again_is_the_same_restart(hf: Client) -> None:
    process = hf.run("sleep 60")
    first = ask(hf, "restart", process=process.id, run=1)["process"]
    assert ask(hf, "restart", process=process.id, run=1)["process"]["pid"] == first["pid"]
    with pytest.raises(NotNow):
        ask(hf, "restart", process=process.id, run=7)
    assert ask(hf, "restart", process=process.id)["process"]["restarts"] == 2


def test_a_restart_survives_a_crash_of_the_daemon(hf: Client, tmp_path: Path) -> None:
    command = "trap 'sleep 0.5; exit 0' TERM; echo x >> starts; echo up; while :; do sleep 0.02; done"
    process = hf.run(command, cwd=tmp_path)
    hf.wait(process.id, until="output", after=0, timeout=60)
    link = hf.open_link()
    link.ask("restart", {"process": process.id})
    eventually(lambda: hf.inspect(process.id).killed_by == "tests")
    kill_daemon(hf)
    link.close()
    eventually(lambda: hf.inspect(process.id).restarts == 1)
    assert hf.inspect(process.id).status == "running"
    hf.kill(process.id, grace=0.1)


def test_a_kill_during_a_restart_wins(hf: Client, tmp_path: Path) -> None:
    # It takes its time without a child: a child would be ended by the same signal.
    slowly = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    command = f"trap '{slowly}; exit 0' TERM; echo x >> starts; echo up; while :; do sleep 0.02; done"
    process = hf.run(command, cwd=tmp_path, restart="always", restart_delay=0.01)
    hf.wait(process.id, until="output", after=0, timeout=60)
    link = hf.open_link()
    link.ask("restart", {"process": process.id})
    eventually(lambda: hf.inspect(process.id).killed_by == "tests")
    (result,) = hf.kill(process.id)
    assert (result.status, result.reason) == ("ended", "killed")
    link.close()
    found = hf.inspect(process.id)
    assert (found.status, found.restarts, (tmp_path / "starts").read_text()) == ("ended", 0, "x\n")


@pytest.mark.parametrize(
    "options",
    [
        {"restart": "sometimes"},
        {"restart": 1},
        {"restart_limit": -1},
        {"restart_limit": 1.5},
        {"restart_delay": 0},
        {"restart_delay": float("nan")},
        {"success_codes": [256]},
        {"success_codes": []},
        {"success_codes": "0"},
        {"success_codes": [True]},
        {"stop_cmd": " "},
        {"stop_cmd": 5},
        {"stop_cmd": "a\0b"},
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(hf: Client, options: dict[str, object]) -> None:
    with pytest.raises(HoldfastError) as refused:
        hf.run("true", **options)  # type: ignore[arg-type]
    assert refused.value.next
    assert hf.ps(all=True) == []
