"""Processes in a place of a backend, which another package brings: a second keeper on this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import end_instance, eventually, never

HERE = Path(__file__).parent
COUNT = "for i in $(seq 1 200); do echo line $i; sleep 0.01; done; exit 7"


class Instance:
    """An instance with the backend `next`, as an installed package brings it."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.signpost = directory / "there"
        self.signpost.mkdir()
        (self.signpost / "signpost").touch()
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text(
            f'[backends.next]\nkind = "neighbour"\nsignpost = "{self.signpost}"\n', encoding="utf-8"
        )
        venv.EnvBuilder(symlinks=True).create(directory / "venv")
        (packages,) = (directory / "venv").glob("lib/python*/site-packages")
        found = [path for path in sys.path if path.endswith(("site-packages", "src"))]
        (packages / "there.pth").write_text("\n".join([str(HERE / "neighbour"), *found]), encoding="utf-8")
        self.python = str(directory / "venv/bin/python")
        self.environ: dict[str, str] = {}

    def __call__(self, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "HOLDFAST_HOME": str(self.home), "CALLER": "secret of the caller", **self.environ}
        command = [self.python, "-m", "holdfast", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environ, timeout=60, stdin=subprocess.DEVNULL, cwd="/usr"
        )
        assert code is None or done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json").stdout)

    def json_lines(self, *arguments: str) -> list[Any]:
        return [json.loads(line) for line in self(*arguments, "--json").stdout.splitlines()]

    def start(self, *arguments: str) -> str:
        return self("run", "-d", "--backend", "next", *arguments).stdout.strip()

    def status(self, process: str) -> str:
        return str(self.json("inspect", process)["status"])

    def place(self) -> dict[str, Any]:
        (found,) = next(one for one in self.json("backends") if one["name"] == "next")["places"]
        return dict(found)

    def keepers(self) -> list[int]:
        """Keeper and anchor of the place."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path("/proc", pid, "cmdline").read_bytes()
            except OSError:
                continue
            if str(self.home / "places").encode() in words and (b"holdfast: keeper" in words or b"anchor" in words):
                found.append(int(pid))
        return found

    def kill_keepers(self) -> None:
        for pid in self.keepers():
            os.kill(pid, signal.SIGKILL)

    def daemon(self) -> int:
        return int(self.json("daemon", "status")["pid"])


@pytest.fixture
def hf(tmp_path: Path) -> Iterator[Instance]:
    instance = Instance(tmp_path)
    yield instance
    end_instance(str(instance.home))
    for pid in instance.keepers():
        os.kill(pid, signal.SIGKILL)


def test_a_command_runs_there_with_the_directory_and_environment_of_the_place(hf: Instance) -> None:
    done = hf("run", "--backend", "next", "--env", "GIVEN=here", "--", "sh", "-c", "pwd; env; exit 3", code=3)
    lines = done.stdout.splitlines()
    assert lines[0] == "/"
    assert "FLOWERS=roses" in lines
    assert "GIVEN=here" in lines
    assert not any(line.startswith(("CALLER=", "HOLDFAST_HOME=")) for line in lines)
    (process,) = hf.json("ps", "-a")
    assert (process["backend"], process["cwd"], process["exit_code"]) == ("next", "/", 3)
    assert hf.place()["state"] == "connected"


def test_processes_of_another_task_run_in_another_place(hf: Instance) -> None:
    first, second = hf.start("--", "sleep", "1000"), hf.start("--task", "other", "--", "sleep", "1000")
    hf.start("--", "sleep", "1001")
    places = next(one for one in hf.json("backends") if one["name"] == "next")["places"]
    assert sorted((place["task"], place["processes"]) for place in places) == [("default", 2), ("other", 1)]
    hf("kill", first, second)


def test_nothing_is_lost_when_the_daemon_is_killed(hf: Instance) -> None:
    process = hf.start("--name", "count", "--", "sh", "-c", COUNT)
    eventually(lambda: "line 20" in hf("logs", process).stdout)
    os.kill(hf.daemon(), signal.SIGKILL)
    eventually(lambda: hf.status(process) == "ended")
    assert hf("logs", process).stdout == "".join(f"line {number}\n" for number in range(1, 201))
    (notice,) = hf.json("inbox", "--wait", "5")
    assert (notice["process"], notice["data"]["exit_code"]) == (process, 7)


def test_a_cut_connection_is_no_end(hf: Instance) -> None:
    process = hf.start("--", "sh", "-c", COUNT)
    (hf.signpost / "barrier").touch()
    hf.kill_keepers()
    eventually(lambda: hf.status(process) == "unreachable")
    assert hf.place()["state"] == "unreachable"
    assert hf.json("inbox") == []
    refused = hf("run", "--backend", "next", "true", code=125)
    assert "there is a barrier" in refused.stderr
    assert "holdfast backends" in refused.stderr
    (hf.signpost / "barrier").unlink()
    eventually(lambda: hf.status(process) != "unreachable")
    eventually(lambda: hf.status(process) == "ended")
    assert len(hf.json("inbox", "--wait", "5")) == 1


def test_a_defect_of_a_backend_does_not_last(hf: Instance) -> None:
    process = hf.start("--", "sleep", "1000")
    (hf.signpost / "defect").touch()
    hf.kill_keepers()
    eventually(lambda: hf.status(process) == "unreachable")
    (hf.signpost / "defect").unlink()
    eventually(lambda: hf.status(process) == "running")
    assert "a defect of this backend" in (hf.home / "daemon.log").read_text()
    hf("kill", process)


@pytest.mark.parametrize(
    "table", ['[backends.next]\nkind = "ssh"\nhost = "x"\n', '[backends.next]\nkind = "podman"\n', ""]
)
def test_a_backend_that_is_of_another_kind_now_or_of_none_keeps_its_places(hf: Instance, table: str) -> None:
    process = hf.start("--", "sleep", "1000")
    configuration = (hf.home / "config.toml").read_text(encoding="utf-8")
    (hf.home / "config.toml").write_text(table, encoding="utf-8")
    hf("daemon", "restart")
    assert hf("run", "echo", "here").stdout == "here\n"
    assert hf.status(process) in ("running", "unreachable")
    (hf.home / "config.toml").write_text(configuration, encoding="utf-8")
    hf("daemon", "restart")
    eventually(lambda: hf.status(process) == "running")
    hf("kill", process)


def test_a_place_that_is_gone_ends_its_processes_once(hf: Instance) -> None:
    process = hf.start("--", "sleep", "1000")
    (hf.signpost / "signpost").unlink()
    hf.kill_keepers()
    eventually(lambda: hf.status(process) == "ended")
    found = hf.json("inspect", process)
    assert found["reason"] == "lost"
    (notice,) = hf.json("inbox", "--wait", "5", "--ack")
    assert notice["process"] == process
    never(lambda: hf.json("inbox"), within=0.5)
    os.kill(found["pid"], signal.SIGKILL)
    (hf.signpost / "signpost").touch()
    assert hf("run", "--backend", "next", "echo", "again").stdout == "again\n"


def test_a_process_that_is_lost_keeps_its_output_and_has_an_end_time(hf: Instance) -> None:
    process = hf.start("--", "sh", "-c", "echo 12345; exec sleep 1000")
    eventually(lambda: hf("logs", process).stdout == "12345\n")
    began = time.time()
    (hf.signpost / "signpost").unlink()
    hf.kill_keepers()
    eventually(lambda: hf.status(process) == "ended")
    (notice,) = hf.json("inbox", "--wait", "5")
    assert notice["data"]["output_bytes"] == 6
    for _ in "before", "after a crash of the daemon":
        found = hf.json("inspect", process)
        assert (found["reason"], found["output_bytes"]) == ("lost", 6)
        assert began <= found["ended_at"] <= time.time()
        (row,) = hf.json("ps", "-a")
        assert (row["output_bytes"], row["ended_at"]) == (6, found["ended_at"])
        assert "6 bytes" in hf("inspect", process).stdout
        assert hf("logs", process).stdout == "12345\n"
        os.kill(hf.daemon(), signal.SIGKILL)
    os.kill(found["pid"], signal.SIGKILL)


def test_an_end_that_was_recorded_before_the_place_was_gone_is_reported_as_it_was(hf: Instance) -> None:
    process = hf.start("--stdin", "--", "sh", "-c", "read line; exit 5")
    daemon = hf.daemon()
    os.kill(daemon, signal.SIGSTOP)
    keepers = hf.keepers()
    held = [int(one) for one in os.listdir("/proc") if one.isdigit() and _is_child(int(one), keepers)]
    for one in held:
        if b"read line" in Path("/proc", str(one), "cmdline").read_bytes():
            os.kill(one, signal.SIGKILL)
    eventually(lambda: (hf.home / "places" / os.listdir(hf.home / "places")[0] / "keeper" / "done" / process).exists())
    (hf.signpost / "signpost").unlink()
    hf.kill_keepers()
    os.kill(daemon, signal.SIGCONT)
    eventually(lambda: hf.status(process) == "ended")
    found = hf.json("inspect", process)
    assert (found["reason"], found["signal"]) == ("signaled", 9)


def _is_child(pid: int, parents: list[int]) -> bool:
    try:
        words = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(words[1]) in parents


@pytest.mark.full
def test_an_unused_place_is_closed_and_opened_again(hf: Instance) -> None:
    process = hf.start("--name", "again", "--", "sh", "-c", "echo run; exit 4")
    hf("wait", process, code=4)
    eventually(lambda: hf.place()["state"] == "closed")
    eventually(lambda: not hf.keepers())
    assert hf("logs", process).stdout == "run\n"
    hf("restart", process)
    hf("wait", process, code=4)
    assert hf("logs", process).stdout == "run\nrun\n"
    assert hf("exec", process, "--", "printenv", "FLOWERS").stdout == "roses\n"
    eventually(lambda: hf.place()["state"] == "closed")
    hf("rm", process)
    hf("inspect", process, code=125)


def test_a_process_of_a_queue_starts_in_its_place(hf: Instance) -> None:
    first = hf.start("--queue", "q", "--", "sh", "-c", "echo one; sleep 1000")
    second = hf.start("--queue", "q", "--", "sh", "-c", "echo $FLOWERS; exit 6")
    assert hf.status(second) == "waiting"
    hf("kill", first)
    hf("wait", second, code=6)
    assert hf("logs", second).stdout == "roses\n"


def test_a_watch_a_terminal_and_readiness_work_there(hf: Instance) -> None:
    script = "echo ready now; stty size; read line; echo got $line; sleep 1000"
    process = hf.start("-t", "--size", "90x20", "--watch", "got", "--ready-log", "ready", "--", "sh", "-c", script)
    hf("wait", process, "--until", "ready", "--timeout", "20")
    assert "20 90" in hf("screen", process).stdout
    hf("send", process, "hello")
    (notice,) = hf.json("inbox", "--wait", "20")
    assert notice["kind"] == "watch_match"
    assert "got hello" in notice["data"]["output"]
    hf("kill", process)


@pytest.mark.full
def test_stop_all_ends_what_runs_there(hf: Instance) -> None:
    polite = hf.start("--", "sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done")
    plain = hf.start("--", "sleep", "1000")
    eventually(lambda: hf("logs", polite).stdout == "up\n")
    assert "--all" in hf("backends", "stop", "next", code=1).stderr
    assert hf.json("backends", "stop", "next", "--all") == {"closed": 1, "kept": 0, "ended": 2}
    found = {one["id"]: one for one in hf.json("ps", "-a")}
    assert {one["reason"] for one in found.values()} == {"killed"}
    assert (found[polite]["exit_code"], found[plain]["signal"]) == (5, signal.SIGTERM)
    assert hf("logs", polite).stdout.endswith("bye\n")
    assert hf.json("backends", "stop", "next", "--all") == {"closed": 0, "kept": 0, "ended": 0}


def test_stop_all_ends_processes_of_a_place_that_does_not_answer_as_lost(hf: Instance) -> None:
    process = hf.start("--", "sleep", "1000")
    (hf.signpost / "barrier").touch()
    hf.kill_keepers()
    eventually(lambda: hf.status(process) == "unreachable")
    assert hf.json("backends", "stop", "next", "--all") == {"closed": 1, "kept": 0, "ended": 1}
    found = hf.json("inspect", process)
    assert (found["status"], found["reason"]) == ("ended", "lost")
    os.kill(found["pid"], signal.SIGKILL)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--backend", "none"), "no backend 'none'"),
        (("--backend", "next", "--image", "x"), "no option image"),
        (("--backend", "next", "--on-boot"), "does not come back after a boot"),
        (("--backend", "next", "--cwd", "sub"), "absolute path"),
        (("--backend", "next", "--cwd", "/no/such/directory"), "/no/such/directory"),
        (("--backend", "next", "--writable", "/tmp"), "a sandbox exists on this machine only"),
        (("--backend", "next", "--network", "host"), "a sandbox exists on this machine only"),
        (("--image", "x"), "--backend podman"),
        (("--backend", "../x"), "backend"),
        (("--backend", ""), "backend is missing"),
    ],
)
def test_what_cannot_be_done_there_is_refused(hf: Instance, arguments: tuple[str, ...], what: str) -> None:
    done = hf("run", *arguments, "--", "true", code=None)
    assert done.returncode in (125, 126, 127)
    assert what in done.stderr
    assert "Traceback" not in done.stderr
    assert hf.json("ps", "-a") == []


def test_ps_and_inspect_say_where_a_process_runs(hf: Instance) -> None:
    hf("run", "-d", "--name", "here", "--", "sleep", "1000")
    assert "BACKEND" not in hf("ps").stdout
    there = hf.start("--name", "there", "--", "sleep", "1000")
    head, *rows = hf("ps").stdout.splitlines()
    column = head.split().index("BACKEND")
    assert {row.split()[1]: row.split()[column] for row in rows} == {"here": "-", "there": "next"}
    assert hf("ps", "-q", "--filter", "backend=next").stdout.split() == [there]
    shown = hf("inspect", "there").stdout
    assert "backend    next" in shown
    assert f"place      {hf.place()['key']}" in shown
    assert "place " not in hf("inspect", "here").stdout
    assert "next\t" in hf("--complete", "run", "--backend", "n").stdout
    assert "next\t" in hf("--complete", "backends", "stop", "n").stdout
    hf("kill", "here", "there")


def test_why_says_that_a_place_does_not_answer_and_since_when(hf: Instance) -> None:
    process = hf.start("--name", "far", "--", "sleep", "1000")
    (hf.signpost / "barrier").touch()
    hf.kill_keepers()
    eventually(lambda: hf.status(process) == "unreachable")
    shown = hf("why", process).stdout
    assert "Whether it runs is not known: its place (next) does not answer." in shown
    assert re.search(r"Its place \(next\) has not answered for \d+s: there is a barrier", shown)
    assert "  holdfast backends\n" in shown
    assert f"next {hf.place()['key']} does not answer: there is a barrier" in hf("backends").stdout
    refused = hf("send", process, "x", code=125).stderr
    assert "there is a barrier" in refused
    assert "holdfast backends" in refused


def test_why_says_that_a_process_was_lost_with_its_place_also_after_a_crash(hf: Instance) -> None:
    process = hf.start("--", "sleep", "1000")
    pid = hf.json("inspect", process)["pid"]
    (hf.signpost / "signpost").unlink()
    hf.kill_keepers()
    eventually(lambda: hf.status(process) == "ended")
    os.kill(pid, signal.SIGKILL)
    (event,) = hf.json_lines("events", "place.gone")
    assert (event["place"], event["backend"], event["why"]) == (hf.place()["key"], "next", "the signpost is gone")
    os.kill(hf.daemon(), signal.SIGKILL)
    shown = hf("why", process).stdout
    assert "How it ended is not known: the signpost is gone" in shown
    assert "holdfast backends, to see" in shown
    assert "Problem:" not in shown


def test_doctor_says_of_each_backend_whether_it_can_be_used(hf: Instance, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec /bin/sleep 1000\n")
    slow.chmod(0o755)
    with (hf.home / "config.toml").open("a") as config:
        config.write(f'[backends.slow]\nkind = "podman"\nprogram = "{slow}"\n')
        config.write('[backends.none]\nkind = "docker"\nprogram = "/no/such/docker"\n')
        config.write('[backends.odd]\nkind = "unheard"\n')
    hf.environ = {"PATH": "/nothing"}
    checks = {check["name"]: check for check in hf.json("doctor")["checks"]}
    assert checks["backend next"]["ok"]
    assert checks["backend next"]["detail"] == "next door"
    assert "no answer within" in checks["backend slow"]["detail"]
    assert checks["backend none"]["degrades"] == "run refuses --backend none"
    assert "not installed" in checks["backend none"]["detail"]
    assert "no kind 'unheard'" in checks["backend odd"]["detail"]
    assert checks["other backends"]["ok"]
    assert "podman, docker, apptainer, ssh" in checks["other backends"]["detail"]
    assert "backend podman" not in checks


def test_only_sessions_with_a_process_there_see_the_events_of_a_place(hf: Instance) -> None:
    hf("run", "--backend", "next", "--session", "mine", "true")
    events = (
        "import sys, holdfast\n"
        "with holdfast.connect(session=sys.argv[1], strict=True) as hf:\n"
        "    print([event['backend'] for event in hf.events('place.*')])"
    )
    seen = {
        session: subprocess.run(
            [hf.python, "-c", events, session],
            capture_output=True,
            text=True,
            env={**os.environ, "HOLDFAST_HOME": str(hf.home)},
            check=True,
            timeout=60,
        ).stdout
        for session in ("mine", "other")
    }
    assert "next" in seen["mine"]
    assert seen["other"] == "[]\n"


def test_a_place_that_has_never_opened_is_not_kept(hf: Instance) -> None:
    (hf.signpost / "barrier").touch()
    hf("run", "--backend", "next", "true", code=125)
    assert next(one for one in hf.json("backends") if one["name"] == "next")["places"] == []
    assert os.listdir(hf.home / "places") == []
    (hf.signpost / "barrier").unlink()
    assert hf("run", "--backend", "next", "echo", "up").stdout == "up\n"
    assert hf.place()["state"] == "connected"


def test_a_table_that_was_removed_leaves_its_places_in_the_list(hf: Instance) -> None:
    hf("run", "--backend", "next", "true")
    (hf.home / "config.toml").write_text("[backends.b]\nimage = 'x'\n", encoding="utf-8")
    hf("daemon", "restart")
    (found,) = [one for one in hf.json("backends") if one["name"] == "next"]
    assert found["state"] == "unusable" and "not in config.toml any more" in found["detail"]
    assert len(found["places"]) == 1
    assert "put it back" in hf("backends", "stop", "next", code=125).stderr
    assert "[backends.b] in config.toml has no kind" in hf("run", "--backend", "b", "true", code=125).stderr


def test_a_question_is_one_sentence(hf: Instance) -> None:
    assert hf("backends", "stop", code=125).stderr == (
        "holdfast: backends stop: which backend? Next: holdfast backends stop NAME\n"
    )


def test_local_is_built_in(hf: Instance) -> None:
    (hf.home / "config.toml").write_text("[backends.local]\n", encoding="utf-8")
    assert "local is built in" in hf("ps", code=125).stderr
