"""Ends: what is told of them, when, and who had asked for it."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Literal

import pytest

import holdfast
from holdfast.client.sync import Client, connect
from tests.daemon.acting import is_alive
from tests.support import eventually

LIFETIMES: tuple[Literal["session", "daemon", "detached"], ...] = ("session", "daemon", "detached")


def state_of(pid: int | None) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_an_exit_code_is_the_commands_own(hf: Client) -> None:
    ended = hf.wait(hf.run("exit 7").id)
    assert (ended.status, ended.reason, ended.exit_code, ended.signal) == ("ended", "exited", 7, None)
    assert (ended.killed_by, ended.forced) == (None, None)
    assert (ended.started_at or 0) <= (ended.ended_at or 0) <= time.time()


@pytest.mark.parametrize("pty", [False, True])
def test_a_signal_from_outside_has_no_owner(hf: Client, pty: bool) -> None:
    ended = hf.wait(hf.run("kill -9 $$", pty=pty).id)
    assert (ended.reason, ended.exit_code, ended.signal) == ("signaled", None, signal.SIGKILL)


def test_a_child_that_exits_42_on_sigterm_was_killed_and_exited_42(hf: Client) -> None:
    process = hf.run("trap 'exit 42' TERM; echo up; while :; do sleep 0.1; done")
    hf.wait_for([process.id], until="output", after=0)
    (result,) = hf.kill(process.id)
    assert (result.status, result.reason, result.exit_code, result.signal) == ("ended", "killed", 42, None)
    told = hf.inspect(process.id)
    assert (told.reason, told.exit_code, told.signal, told.killed_by) == ("killed", 42, None, "tests")


def test_a_tree_that_ignores_sigterm_is_forced_and_nothing_of_it_survives(hf: Client, tmp_path: Path) -> None:
    script = "trap '' TERM; setsid bash -c 'trap \"\" TERM; echo $$ > escaped; while :; do sleep 1; done' & wait"
    process = hf.run(script, cwd=tmp_path)
    eventually(lambda: (tmp_path / "escaped").exists() and (tmp_path / "escaped").read_text())
    escaped = int((tmp_path / "escaped").read_text())
    (result,) = hf.kill(process.id, grace=0.2)
    assert (result.status, result.forced, result.survivors) == ("ended", True, [])
    assert not is_alive(escaped)
    assert hf.inspect(process.id).forced is True


def test_a_forced_end_of_a_member_is_reported_though_the_leader_ended_by_itself(hf: Client, tmp_path: Path) -> None:
    process = hf.run("(trap '' TERM; touch up; while :; do sleep 0.1; done) & wait", cwd=tmp_path)
    eventually((tmp_path / "up").exists)
    (result,) = hf.kill(process.id, grace=0.3)
    assert (result.forced, result.survivors) == (True, [])
    assert hf.inspect(process.id).forced is True


def test_a_command_whose_descendant_keeps_the_pipe_has_ended_and_leftovers_are_named(hf: Client) -> None:
    began = time.monotonic()
    ended = hf.wait(hf.run("sleep 300 & echo hi; exit 4").id)
    assert time.monotonic() - began < 30, "not as long as the descendant"
    assert (ended.status, ended.exit_code) == ("ended", 4)
    (leftover,) = ended.leftover_pids
    assert is_alive(leftover)
    (result,) = hf.kill(ended.id)
    assert result.survivors == []
    assert not is_alive(leftover)
    after = hf.inspect(ended.id)
    assert (after.leftover_pids, after.reason, after.killed_by) == ([], "exited", None)


def test_a_command_that_closes_its_output_still_runs(hf: Client) -> None:
    process = hf.run("exec >/dev/null 2>&1; sleep 0.5; exit 7")
    eventually(lambda: hf.inspect(process.id))
    assert hf.inspect(process.id).status == "running"
    assert hf.wait(process.id).exit_code == 7


class TestWait:
    def test_that_runs_out_is_no_error_and_says_so(self, hf: Client) -> None:
        process = hf.run("sleep 60")
        waited = hf.wait_for([process.id], timeout=0.05)
        assert (waited.timed_out, waited.done, waited.processes[0].status) == (True, [], "running")
        assert 0.04 < (waited.waited or 0) < 30

    def test_for_any_returns_with_the_first(self, hf: Client) -> None:
        slow, quick = hf.run("sleep 60"), hf.run("sleep 0.1; exit 3")
        waited = hf.wait_for([slow.id, quick.id], any=True, timeout=60)
        assert (waited.done, waited.timed_out) == ([quick.id], False)

    def test_for_all_returns_with_the_last_in_the_order_of_their_ends(self, hf: Client) -> None:
        second, first = hf.run("sleep 0.3"), hf.run("sleep 0.1")
        waited = hf.wait_for([second.id, first.id], timeout=60)
        assert waited.done == [first.id, second.id]

    def test_is_clamped_to_the_configured_limit_and_says_so(self, config: Path, home: Path) -> None:
        config.write_text("wait_limit = 0.1\n")
        with connect() as hf:
            waited = hf.wait_for([hf.run("sleep 60").id], timeout=30)
            assert (waited.timed_out, waited.clamped_to) == (True, 0.1)

    def test_for_output_returns_when_there_is_some(self, hf: Client) -> None:
        process = hf.run("sleep 0.1; echo now; sleep 60")
        waited = hf.wait_for([process.id], until="output", after=0, timeout=60)
        assert (waited.done, waited.processes[0].status) == ([process.id], "running")
        assert hf.wait_for([process.id], until="output", timeout=0.05).timed_out

    def test_for_more_output_of_several_is_not_over_before_there_is_more(self, hf: Client) -> None:
        ids = [hf.run("echo before; sleep 60").id for _ in range(5)]
        hf.wait_for(ids, until="output", after=0, timeout=60)
        assert hf.wait_for(ids, until="output", any=True, timeout=0.2).timed_out

    def test_for_output_looks_at_both_streams(self, hf: Client) -> None:
        process = hf.run("sleep 0.1; echo now >&2; sleep 60", split=True)
        assert hf.wait_for([process.id], until="output", after=0, timeout=60).done == [process.id]

    def test_for_output_returns_when_there_will_be_none(self, hf: Client) -> None:
        process = hf.run("sleep 0.1")
        assert hf.wait_for([process.id], until="output", timeout=60).done == [process.id]

    def test_wakes_within_milliseconds(self, hf: Client) -> None:
        late = []
        for _ in range(10):
            ended = hf.wait(hf.run(["sleep", "0.03"]).id)
            late.append(time.time() - (ended.ended_at or 0))
        assert sorted(late)[2] < 0.1  # of the best: this machine may be busy

    def test_without_a_target_is_refused(self, hf: Client) -> None:
        with pytest.raises(holdfast.BadValue):
            hf.wait([])
        with pytest.raises(holdfast.NotFound):
            hf.wait("proc_ffffffffffff")

    def test_of_a_client_that_goes_away_is_given_up(self, hf: Client) -> None:
        process = hf.run("sleep 60")
        link = hf.open_link()
        link.ask("wait", {"processes": [process.id]})
        link.close()
        assert hf.kill(process.id)[0].status == "ended"

    def test_can_be_cancelled_and_the_connection_goes_on(self, hf: Client) -> None:
        process = hf.run("sleep 60")
        link = hf.open_link()
        link.cancel(link.ask("wait", {"processes": [process.id]}))
        assert link.call("inspect", {"process": process.id})[0]["process"]["status"] == "running"
        link.close()


class TestKill:
    def test_of_an_unknown_id_is_not_found(self, hf: Client) -> None:
        with pytest.raises(holdfast.NotFound):
            hf.kill("proc_ffffffffffff")

    def test_of_an_ended_one_changes_nothing(self, hf: Client) -> None:
        ended = hf.wait(hf.run("exit 3").id)
        (result,) = hf.kill(ended.id)
        assert (result.status, result.reason, result.exit_code) == ("ended", "exited", 3)

    def test_of_a_session_spares_the_others(self, hf: Client) -> None:
        mine = [hf.run("sleep 60").id for _ in range(3)]
        other = hf.run("sleep 60", session="other")
        assert {result.id for result in hf.kill(session="tests")} == set(mine)
        assert [process.id for process in hf.ps()] == [other.id]

    def test_of_a_task_spares_the_others(self, hf: Client) -> None:
        mine, other = hf.run("sleep 60", task="t1"), hf.run("sleep 60", task="t2")
        assert [result.id for result in hf.kill(task="t1")] == [mine.id]
        assert [process.id for process in hf.ps()] == [other.id]

    def test_of_everyone_and_of_no_one_in_particular(self, hf: Client) -> None:
        hf.run("sleep 60")
        with pytest.raises(holdfast.BadValue):
            hf.kill()
        assert len(hf.kill(all=True)) == 1
        assert hf.ps() == []

    def test_of_several_takes_as_long_as_the_slowest(self, hf: Client) -> None:
        ids = [hf.run("trap '' TERM; while :; do sleep 1; done").id for _ in range(8)]
        began = time.monotonic()
        hf.kill(*ids, grace=2.0)
        assert time.monotonic() - began < 14, "one after the other would take 16 s"

    def test_with_a_signal_sends_just_that(self, hf: Client, tmp_path: Path) -> None:
        process = hf.run("trap 'touch got' USR1; touch up; while :; do sleep 0.05; done", cwd=tmp_path)
        eventually((tmp_path / "up").exists)
        (result,) = hf.kill(process.id, signal="USR1")
        assert (result.status, result.sent is not None and result.sent >= 1) == ("running", True)
        eventually((tmp_path / "got").exists)

    def test_that_stops_can_be_continued(self, hf: Client) -> None:
        process = hf.run("sleep 60")
        hf.kill(process.id, signal=signal.SIGSTOP)
        eventually(lambda: state_of(process.pid) == "T")
        hf.kill(process.id, signal=signal.SIGCONT)
        eventually(lambda: state_of(process.pid) == "S")

    def test_says_who_asked_first(self, hf: Client, home: Path) -> None:
        process = hf.run("trap '' TERM; echo up; while :; do sleep 0.1; done")
        hf.wait_for([process.id], until="output", after=0)
        first = threading.Thread(target=hf.kill, args=(process.id,), kwargs={"grace": 1.0})
        first.start()
        eventually(lambda: hf.inspect(process.id).killed_by == "tests")
        with connect("second") as other:
            other.kill(process.id, grace=0.1)
        first.join()
        assert hf.inspect(process.id).killed_by == "tests"


class TestDeadline:
    def test_ends_the_process(self, hf: Client) -> None:
        process = hf.run("sleep 90", deadline=0.3)
        ended = hf.wait(process.id, timeout=20)
        assert (ended.reason, ended.signal, ended.killed_by) == ("deadline", signal.SIGTERM, None)
        assert 0.25 < (ended.ended_at or 0) - (ended.started_at or 0) < 5

    def test_that_only_notifies_lets_it_run(self, hf: Client, home: Path) -> None:
        process = hf.run("sleep 90", deadline=0.1, deadline_action="notify")
        eventually(lambda: f"deadline process={process.id} action=notify" in (home / "daemon.log").read_text())
        assert hf.inspect(process.id).status == "running"

    def test_that_passed_while_the_daemon_was_dead_is_acted_upon(self, hf: Client) -> None:
        process = hf.run("sleep 90", deadline=0.5)
        os.kill(hf.status()["pid"], signal.SIGKILL)
        assert hf.wait(process.id, timeout=20).reason == "deadline"


class TestLifetimes:
    def test_of_a_session_end_with_it(self, hf: Client) -> None:
        short, long = hf.run("sleep 60", lifetime="session"), hf.run("sleep 61")
        answer = hf.end_session("tests")
        assert [result["id"] for result in answer["results"]] == [short.id]
        assert answer["left"] == [long.id]
        assert hf.inspect(short.id).reason == "killed"

    @pytest.mark.parametrize("how", ["stop", "signal"])
    def test_of_the_daemon_end_when_it_is_stopped_on_purpose(self, hf: Client, how: str) -> None:
        ids = {lifetime: hf.run(f"sleep 6{n}", lifetime=lifetime).id for n, lifetime in enumerate(LIFETIMES)}
        pid = hf.status()["pid"]
        if how == "stop":
            assert hf.stop_daemon() == {"ended": [ids["daemon"]], "left": [ids["session"], ids["detached"]]}
        else:
            os.kill(pid, signal.SIGTERM)
        eventually(lambda: not is_alive(pid))
        assert {process.lifetime for process in hf.ps()} == {"session", "detached"}
        assert hf.inspect(ids["daemon"]).reason == "killed"

    def test_outlive_a_crash(self, hf: Client) -> None:
        pids = {hf.run(f"sleep 6{n}", lifetime=lifetime).pid for n, lifetime in enumerate(LIFETIMES)}
        os.kill(hf.status()["pid"], signal.SIGKILL)
        assert {process.pid for process in hf.ps()} == pids


def test_an_ended_process_can_be_removed_and_a_running_one_not(hf: Client, home: Path) -> None:
    ended, running = hf.wait(hf.run("echo x").id), hf.run("sleep 60")
    with pytest.raises(holdfast.NotNow, match=running.id):
        hf.remove(ended.id, running.id)
    assert hf.remove(ended.id) == [ended.id]
    assert [process.id for process in hf.ps(all=True)] == [running.id]
    assert not (home / "place" / "done" / ended.id).exists()
    with pytest.raises(holdfast.NotFound):
        hf.logs(ended.id)


def test_a_process_older_than_the_configured_age_is_stale(config: Path, home: Path) -> None:
    config.write_text("stale_after = 0\n")
    with connect() as hf:
        process = hf.run("sleep 60")
        assert hf.inspect(process.id).stale is True
        assert hf.inspect(process.id).status == "running"
