"""Processes that wait for their turn in a queue, or for other processes, with a real daemon and keeper."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.client.process import Process
from holdfast.client.sync import Client, connect
from holdfast.errors import BadValue, DiskFull, HoldfastError, NotFound, NotNow
from tests.daemon.acting import is_alive, kill_daemon, kill_keeper, log_text
from tests.support import eventually, fill_disk, small_disk_at


class Gate:
    """Commands that end when their file is there."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.log = directory / "log"

    def command(self, name: str, code: int = 0) -> str:
        path = self._directory / name
        return f"echo {name} >> {self.log}; until [ -e {path} ]; do sleep 0.01; done; exit {code}"

    def open(self, *names: str) -> None:
        for name in names:
            (self._directory / name).touch()

    @property
    def begun(self) -> list[str]:
        """The names of the commands that were started, in order."""
        return self.log.read_text().split() if self.log.exists() else []


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


def is_running(hf: Client, process: Process) -> Callable[[], bool]:
    return lambda: hf.inspect(process.id).status == "running"


def queue_of(hf: Client, name: str) -> dict[str, Any]:
    return next(queue for queue in hf.queues() if queue["name"] == name)


def test_a_queue_runs_one_at_a_time_in_the_order_of_the_requests(hf: Client, gate: Gate) -> None:
    first, second, third = (hf.run(gate.command(name), queue="build", name=name) for name in "abc")
    eventually(is_running(hf, first))
    assert [hf.inspect(one.id).status for one in (second, third)] == ["waiting", "waiting"]
    assert queue_of(hf, "build") == {
        "name": "build",
        "limit": 1,
        "paused": False,
        "running": [first.id],
        "waiting": [second.id, third.id],
    }
    gate.open("a")
    eventually(is_running(hf, second))
    assert hf.inspect("c").status == "waiting"
    gate.open("b", "c")
    assert hf.wait(third.id, timeout=20).exit_code == 0
    assert gate.begun == ["a", "b", "c"]


def test_a_waiting_process_is_listed_without_a_pid_and_keeps_its_name(hf: Client, gate: Gate) -> None:
    hf.run(gate.command("a"), queue="build")
    waiting = hf.run(gate.command("b"), queue="build", name="next", deadline=1000.0)
    assert (waiting.status, waiting.pid, waiting.started_at, waiting.deadline_at) == ("waiting", None, None, None)
    assert waiting.id in [process.id for process in hf.ps()]
    with pytest.raises(NotNow, match="next"):
        hf.run("true", name="next")
    gate.open("a", "b")
    assert hf.wait("next", timeout=20).exit_code == 0


def test_the_limit_of_a_queue_can_be_raised_while_processes_wait(hf: Client, gate: Gate) -> None:
    processes = [hf.run(gate.command(name), queue="build") for name in "abc"]
    hf.set_queue("build", limit=2)
    eventually(is_running(hf, processes[1]))
    assert hf.inspect(processes[2].id).status == "waiting"
    assert queue_of(hf, "build")["limit"] == 2
    gate.open(*"abc")


def test_a_paused_queue_starts_nothing_until_it_is_resumed(hf: Client, gate: Gate) -> None:
    hf.set_queue("build", paused=True)
    waiting = hf.run(gate.command("a"), queue="build")
    other = hf.run("true", queue="other")
    assert hf.wait(other.id, timeout=20).exit_code == 0
    assert hf.inspect(waiting.id).status == "waiting"
    hf.set_queue("build", paused=False)
    eventually(is_running(hf, waiting))
    gate.open("a")


def test_after_waits_for_an_end_and_after_success_for_a_success(hf: Client, gate: Gate) -> None:
    failing, working = hf.run(gate.command("bad", code=3)), hf.run(gate.command("good"))
    anyway = hf.run("echo anyway", after=[failing.id])
    skipped = hf.run("echo never", after_success=[failing.id, working.id])
    chained = hf.run("echo never either", after_success=[skipped.id])
    allowed = hf.run("echo yes", after_success=[working.id])
    assert {hf.inspect(one.id).status for one in (anyway, skipped, chained, allowed)} == {"waiting"}
    gate.open("bad")
    assert hf.wait(anyway.id, timeout=20).exit_code == 0
    ended = hf.wait(skipped.id, timeout=20)
    assert (ended.reason, ended.exit_code, ended.pid) == ("skipped", None, None)
    assert hf.wait(chained.id, timeout=20).reason == "skipped"
    assert hf.inspect(allowed.id).status == "waiting"
    gate.open("good")
    assert hf.wait(allowed.id, timeout=20).exit_code == 0


def test_one_that_waits_for_a_process_does_not_hold_up_its_queue(hf: Client, gate: Gate) -> None:
    long = hf.run(gate.command("long"))
    behind = hf.run("true", queue="build", after=[long.id])
    ahead = hf.run("true", queue="build")
    assert hf.wait(ahead.id, timeout=20).exit_code == 0
    assert hf.inspect(behind.id).status == "waiting"
    gate.open("long")
    assert hf.wait(behind.id, timeout=20).exit_code == 0


def test_a_killed_one_leaves_the_queue_and_is_never_started(hf: Client, gate: Gate) -> None:
    first = hf.run(gate.command("a"), queue="build")
    waiting = hf.run(gate.command("b"), queue="build")
    last = hf.run(gate.command("c"), queue="build")
    (result,) = hf.kill(waiting.id)
    assert (result.status, result.reason, result.survivors) == ("ended", "killed", [])
    gate.open("a", "c")
    assert hf.wait(last.id, timeout=20).exit_code == 0
    ended = hf.inspect(waiting.id)
    assert (ended.reason, ended.killed_by, ended.exit_code, ended.started_at) == ("killed", "tests", None, None)
    assert gate.begun == ["a", "c"]
    assert hf.logs(waiting.id).text == ""
    hf.remove(first.id, waiting.id)


def test_a_command_that_cannot_be_started_ends_with_its_reason_and_notifies(hf: Client) -> None:
    process = hf.run(["/nonexistent/program"], queue="build")
    after = hf.run("true", queue="build")
    assert hf.wait(after.id, timeout=20).exit_code == 0
    (notice,) = hf.inbox(wait=20)
    assert (notice.process, notice.data["reason"]) == (process.id, "failed_start")
    ended = hf.inspect(process.id)
    assert ended.reason == "failed_start"
    assert "not found" in str(ended.trouble)
    kill_daemon(hf)
    assert hf.inspect(process.id).to_json() == ended.to_json()


def test_the_owner_is_notified_of_a_skipped_process_once(hf: Client) -> None:
    bad = hf.run("exit 3", notify="never")
    process = hf.run("true", after_success=[bad.id])
    (notice,) = hf.inbox(wait=20)
    assert (notice.process, notice.data["reason"]) == (process.id, "skipped")
    assert "did not succeed" in notice.text
    hf.ack(notice.id)
    kill_daemon(hf)
    assert hf.inbox() == []


def test_waiting_processes_survive_the_daemon_and_start_in_order(hf: Client, gate: Gate) -> None:
    processes = [hf.run(gate.command(name), queue="build", env={"MINE": name}) for name in "abcd"]
    eventually(is_running(hf, processes[0]))
    kill_daemon(hf)
    assert queue_of(hf, "build")["waiting"] == [one.id for one in processes[1:]]
    kill_keeper(hf, "keeper")
    gate.open(*"abcd")
    for process in processes[1:]:
        assert hf.wait(process.id, timeout=20).exit_code == 0
    assert gate.begun == ["a", "b", "c", "d"]


@pytest.mark.parametrize("point", ["queued-start", "queued-started"])
def test_killed_at_any_step_a_start_happens_once(
    point: str, home: Path, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect("tests") as hf:
        hf.run(gate.command("a"), queue="build")
        waiting = hf.run(gate.command("b"), queue="build")
        hf.stop_daemon()
    monkeypatch.setenv("HOLDFAST_DIE_AT", point)
    monkeypatch.setenv("HOLDFAST_DIE_MARK", str(tmp_path / "died"))
    with connect("tests") as hf:
        gate.open("a", "b")
        assert hf.wait(waiting.id, timeout=30).exit_code == 0
        eventually((tmp_path / "died").exists)
        kill_daemon(hf)
        assert hf.inspect(waiting.id).exit_code == 0
        assert (queue_of(hf, "build")["waiting"] if hf.queues() else []) == []
        assert gate.begun == ["a", "b"]
        hf.stop_daemon()


def test_killed_before_its_reply_a_repeated_request_is_the_same_start(
    home: Path, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DIE_AT", "start-recorded")
    monkeypatch.setenv("HOLDFAST_DIE_MARK", str(tmp_path / "died"))
    with connect("tests") as hf:
        process = hf.run(gate.command("a"), queue="build")
        assert (tmp_path / "died").exists()
        gate.open("a")
        assert hf.wait(process.id, timeout=30).exit_code == 0
        assert [one.id for one in hf.ps(all=True)] == [process.id]
        assert gate.begun == ["a"]
        hf.stop_daemon()


def test_after_a_boot_queues_are_paused(home: Path, gate: Gate) -> None:
    with connect("tests") as hf:
        first = hf.run(gate.command("a"), queue="build")
        waiting = hf.run(gate.command("b"), queue="build")
        without = hf.run(gate.command("c"), after=[first.id])
        eventually(is_running(hf, first))
        daemon = hf.status()["pid"]
        hf.stop_daemon()
    gate.open("a", "b", "c")
    eventually(lambda: not is_alive(daemon))
    with sqlite3.connect(home / "store.db") as store:
        assert store.execute("UPDATE memory SET value = '\"another\"' WHERE name = 'boot'").rowcount == 1
    store.close()
    with connect("tests") as hf:
        assert hf.wait(first.id, timeout=20).exit_code == 0
        assert queue_of(hf, "build")["paused"] is True
        assert hf.inspect(waiting.id).status == "waiting"
        assert hf.wait(without.id, timeout=20).reason == "skipped"
        hf.set_queue("build", paused=False)
        assert hf.wait(waiting.id, timeout=20).exit_code == 0
        assert gate.begun == ["a", "b"]
        hf.stop_daemon()


def test_logs_and_waits_follow_a_waiting_process_into_its_run(hf: Client, gate: Gate) -> None:
    hf.run(gate.command("a"), queue="build")
    waiting = hf.run("echo first; echo second", queue="build")
    assert hf.logs(waiting.id).closed is False
    assert hf.wait_for([waiting.id], until="output", timeout=0.05).timed_out
    gate.open("a")
    waited = hf.wait_for([waiting.id], until="match", match="second", after=0, timeout=20)
    assert waited.matches[waiting.id].text == "second"
    assert "".join(piece.data.decode() for piece in hf.follow(waiting.id)) == "first\nsecond\n"


def test_what_is_awaited_is_not_removed(hf: Client) -> None:
    hf.set_queue("build", paused=True)
    done = hf.run("true")
    hf.wait(done.id, timeout=20)
    waiting = hf.run("true", queue="build", after_success=[done.id])
    with pytest.raises(NotNow, match="waits for"):
        hf.remove(done.id)
    hf.kill(waiting.id)
    hf.remove(done.id)


def test_a_waiting_process_takes_no_input_no_terminal_and_no_restart(hf: Client) -> None:
    hf.set_queue("build", paused=True)
    waiting = hf.run("cat", queue="build", stdin=True, pty=True)
    for call in (
        lambda: hf.send(waiting.id, "x"),
        lambda: hf.resize(waiting.id, 80, 24),
        lambda: hf.screen(waiting.id),
        lambda: hf.restart(waiting.id),
        lambda: hf.remove(waiting.id),
    ):
        with pytest.raises(NotNow):
            call()
    hf.kill(waiting.id)
    with pytest.raises(NotNow, match="never started"):
        hf.restart(waiting.id)


def test_a_queued_terminal_runs_as_one(hf: Client) -> None:
    process = hf.run("test -t 0 && stty size", queue="build", pty=True, size=(77, 11))
    assert hf.wait(process.id, timeout=20).exit_code == 0
    assert hf.logs(process.id).text == "11 77\n"


def test_bad_requests_are_refused_and_leave_nothing(hf: Client) -> None:
    with pytest.raises(NotFound):
        hf.run("true", after=["nothing"])
    with pytest.raises(BadValue):
        hf.run("true", queue="no spaces")
    with pytest.raises(BadValue):
        hf.run("true", queue="")
    with pytest.raises(BadValue):
        hf.set_queue("build", limit=0)
    with pytest.raises(HoldfastError):
        hf.set_queue("../build", limit=1)
    assert hf.ps(all=True) == []
    assert hf.queues() == []


def test_another_session_cannot_be_awaited_by_a_bound_one(hf: Client, gate: Gate) -> None:
    process = hf.run(gate.command("a"), queue="build")
    with connect("other", strict=True) as other:
        with pytest.raises(NotFound):
            other.run("true", after=[process.id])
        assert other.queues() == []
        for change in (lambda: other.set_queue("build", limit=5), lambda: other.remove_queue("build")):
            with pytest.raises(HoldfastError):
                change()
        waiting = other.run("true", queue="build")
        assert waiting.notes == (f"{waiting.id} waits in the queue build",)  # not behind how many of others
    gate.open("a")


def test_a_removed_queue_is_gone_also_after_a_crash_and_begins_anew(hf: Client) -> None:
    hf.set_queue("build", limit=3, paused=True)
    waiting = hf.run("true", queue="build")
    with pytest.raises(NotNow, match="has processes"):
        hf.remove_queue("build")
    hf.kill(waiting.id)
    assert hf.remove_queue("build") is True
    kill_daemon(hf)
    assert hf.queues() == []
    assert hf.remove_queue("build") is False
    assert hf.wait(hf.run("true", queue="build").id, timeout=20).exit_code == 0
    with pytest.raises(BadValue):
        hf.remove_queue("../build")


def test_a_renamed_session_keeps_its_waiting_processes(hf: Client) -> None:
    hf.set_queue("build", paused=True)
    process = hf.run("echo $HOLDFAST_SESSION", queue="build")
    hf.rename_session("tests", "renamed")
    hf.set_queue("build", paused=False)
    assert hf.wait(process.id, timeout=20).session == "renamed"
    assert hf.logs(process.id).text == "renamed\n"


def test_waiting_processes_do_not_count_as_running(home: Path, config: Path, gate: Gate) -> None:
    config.write_text("max_processes = 2\n")
    with connect("tests") as hf:
        hf.set_queue("build", paused=True)
        for _ in range(5):
            hf.run("true", queue="build")
        assert hf.wait(hf.run("true").id, timeout=20).exit_code == 0
        hf.set_queue("build", paused=False, limit=5)
        assert all(hf.wait(process.id, timeout=20).exit_code == 0 for process in hf.ps(all=True))
        hf.stop_daemon()


def test_on_a_full_disk_a_queued_start_is_refused_and_never_made(home: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with small_disk_at(home, "4m"), connect("tests") as hf:
        hf.set_queue("build", paused=True)
        ballast = fill_disk(home)
        command = f"echo >> {ran}; : {'x' * 10_000}"
        with pytest.raises(DiskFull):
            [hf.run(command, queue="build") for _ in range(50)]
        recorded = len(hf.ps())
        ballast.unlink()
        kill_daemon(hf)
        assert len(hf.ps()) == recorded
        hf.kill(all=True)
        hf.stop_daemon()
    assert not ran.exists()


def test_a_restarting_process_keeps_its_place_and_is_shown_as_restarting(hf: Client) -> None:
    process = hf.run("exit 3", queue="build", restart="always", restart_delay=60.0)
    waiting = hf.run("true", queue="build")
    eventually(lambda: hf.inspect(process.id).status == "restarting")
    assert hf.inspect(waiting.id).status == "waiting"
    hf.kill(process.id)
    assert hf.wait(waiting.id, timeout=20).exit_code == 0


def test_daemon_log_names_queued_and_started(hf: Client, home: Path) -> None:
    process = hf.run("true", queue="build")
    hf.wait(process.id, timeout=20)
    eventually(lambda: f"queued process={process.id}" in log_text(home))
    assert not is_alive(int(hf.inspect(process.id).pid or 0))
