"""Starting: an id means that it runs, an error means that nothing is there."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import holdfast
from holdfast.client.sync import Client, connect
from holdfast.daemon.handlers.start import _check_offers
from holdfast.ops.records import PROCESS_FIELDS
from tests.daemon.acting import ask, kill_daemon
from tests.support import eventually, run_cli

START: dict[str, Any] = {"id": "proc_00000000abcd", "argv": ["sleep", "60"], "cwd": "/"}


def test_the_id_is_in_the_list_when_start_returns(hf: Client) -> None:
    process = hf.run("sleep 60")
    assert [listed.id for listed in hf.ps()] == [process.id]
    assert process.status == "running"
    assert Path(f"/proc/{process.pid}").exists()


def test_a_process_object_has_exactly_the_fields_of_the_contract(hf: Client) -> None:
    process = hf.run(["sleep", "60"], name="nap", task="t", lifetime="session", deadline=30.0)
    for told in (process, *hf.ps(), hf.inspect("nap")):
        assert tuple(told._fields) == PROCESS_FIELDS
    assert process.argv == ["sleep", "60"]
    assert process.command == "sleep 60"
    assert (process.session, process.task, process.lifetime) == ("tests", "t", "session")
    assert process.deadline_at == pytest.approx((process.started_at or 0) + 30.0)


def test_an_older_keeper_refuses_what_it_does_not_know() -> None:
    keeper = SimpleNamespace(is_reachable=True, about={"offers": ["limits"]})
    context: Any = SimpleNamespace(places=SimpleNamespace(get=lambda _: SimpleNamespace(keeper=keeper)))
    want: Any = SimpleNamespace(launch={"nice": 5}, meta=SimpleNamespace(limits={"pids": 9}, place=None))
    with pytest.raises(holdfast.Unsupported, match="does not know nice"):
        _check_offers(context, want)
    keeper.about = {"offers": ["limits", "nice"]}
    _check_offers(context, want)


def test_a_restart_keeps_its_priority(hf: Client) -> None:
    process = hf.run("nice; exec sleep 60", nice=5)
    hf.wait(process, until="output", after=0, timeout=60)
    again = hf.restart(process, grace=0.2)
    assert os.getpriority(os.PRIO_PROCESS, again.pid or 0) == 5


def test_names_that_are_no_utf8_are_passed_on_as_they_are(hf: Client, tmp_path: Path) -> None:
    directory = os.fsdecode(os.fsencode(tmp_path) + b"/d\xff")
    os.mkdir(directory)
    name = os.fsdecode(b"f\xfe")
    Path(directory, name).write_text("found\n")
    by_argv = hf.run(["cat", name], cwd=directory)
    by_text = hf.run(f"cat {name}", cwd=directory)
    hf.wait([by_argv.id, by_text.id], timeout=20)
    assert [hf.logs(process.id).text for process in (by_argv, by_text)] == ["found\n"] * 2
    kill_daemon(hf)
    assert hf.inspect(by_argv.id).argv == ["cat", name]
    assert hf.inspect(by_text.id).cwd == directory
    shown = run_cli("ps", "-a")
    assert shown.returncode == 0
    assert b"f\\udcfe" in shown.stdout


@pytest.mark.parametrize(
    ("command", "options", "error"),
    [
        (["no-such-command-anywhere"], {}, holdfast.CommandNotFound),
        (["/etc/hostname"], {}, holdfast.NotExecutable),
        ("true", {"cwd": "/no/such/directory"}, holdfast.StartFailed),
        ("true", {"cwd": "/etc/hostname"}, holdfast.StartFailed),
        ("true", {"shell": "/no/such/shell"}, holdfast.CommandNotFound),
    ],
)
def test_a_start_that_fails_is_a_typed_error_and_leaves_nothing(
    hf: Client, home: Path, command: Any, options: Any, error: type[Exception]
) -> None:
    with pytest.raises(error) as refused:
        hf.run(command, **options)
    assert options.get("cwd", options.get("shell", command[0])) in str(refused.value)
    assert hf.ps(all=True) == []
    assert list((home / "place" / "live").iterdir()) == []


def test_the_same_start_twice_starts_once(hf: Client) -> None:
    first, second = (ask(hf, "start", **START)["process"] for _ in range(2))
    assert first["pid"] == second["pid"]
    assert len(hf.ps()) == 1


def test_the_same_start_after_a_crash_of_the_daemon_starts_once(hf: Client) -> None:
    pid = ask(hf, "start", **START)["process"]["pid"]
    kill_daemon(hf)
    assert ask(hf, "start", **START)["process"]["pid"] == pid


def test_a_name_is_for_one_running_process(hf: Client) -> None:
    first = hf.run("sleep 60", name="web")
    with pytest.raises(holdfast.NotNow, match=first.id):
        hf.run("sleep 61", name="web")
    hf.kill(first.id)
    second = hf.run("sleep 61", name="web")
    assert hf.inspect("web").id == second.id


def test_a_full_house_refuses_and_names_who_fills_it(config: Path, home: Path) -> None:
    config.write_text("max_processes = 3\n")
    with connect() as hf:
        ids = [hf.run("sleep 60").id for _ in range(3)]
        with pytest.raises(holdfast.LimitReached) as refused:
            hf.run("sleep 60")
        assert all(process_id in refused.value.message for process_id in ids)
        hf.kill(ids[0])
        assert hf.run("sleep 60").status == "running"


class TestTheSameCommandAgain:
    def test_the_reply_names_the_running_one(self, hf: Client) -> None:
        first = hf.run("sleep 60")
        second = hf.run("sleep 60")
        assert second.id != first.id
        assert any(first.id in note for note in second.notes)

    def test_can_be_the_running_one(self, hf: Client) -> None:
        first = hf.run("sleep 60")
        second = hf.run("sleep 60", if_running="reuse")
        assert (second.id, second.pid) == (first.id, first.pid)
        assert len(hf.ps()) == 1

    def test_can_replace_it(self, hf: Client) -> None:
        first = hf.run("sleep 60")
        second = hf.run("sleep 60", if_running="replace")
        assert [process.id for process in hf.ps()] == [second.id]
        replaced = hf.inspect(first.id)
        assert (replaced.reason, replaced.killed_by) == ("killed", "tests")

    def test_can_be_refused(self, hf: Client) -> None:
        first = hf.run("sleep 60")
        with pytest.raises(holdfast.AlreadyRunning, match=first.id):
            hf.run("sleep 60", if_running="error")
        assert len(hf.ps()) == 1

    def test_is_another_one_in_another_session_or_directory(self, hf: Client) -> None:
        hf.run("sleep 60", cwd="/")
        assert hf.run("sleep 60", cwd="/tmp", if_running="error").status == "running"
        assert hf.run("sleep 60", cwd="/", session="other", if_running="error").status == "running"


class TestEnvironment:
    def test_is_the_callers_with_ours_on_top(self, hf: Client, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OF_THE_CALLER", "yes")
        process = hf.run(
            'echo "$OF_THE_CALLER $GRANTED $HOLDFAST_ID $HOLDFAST_SESSION $HOLDFAST_HOME $PYTHONUNBUFFERED"',
            env={"GRANTED": "too"},
        )
        hf.wait(process.id)
        assert hf.logs(process.id).text.split() == ["yes", "too", process.id, "tests", str(home), "1"]

    def test_has_what_the_profile_exports_though_no_start_pays_for_it(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        user = tmp_path / "user"
        (user / "bin").mkdir(parents=True)
        (user / "bin" / "my-tool").write_text("#!/bin/sh\necho found\n")
        (user / "bin" / "my-tool").chmod(0o755)
        (user / ".bashrc").write_text("case $- in *i*) ;; *) return;; esac\n")
        (user / ".profile").write_text(f'echo noise; export PATH="{user}/bin:$PATH" FROM_PROFILE=yes\n')
        monkeypatch.setenv("HOME", str(user))
        monkeypatch.setenv("SHELL", "/bin/bash")
        with connect() as hf:
            process = hf.run("my-tool; echo $FROM_PROFILE")
            hf.wait(process.id)
            assert hf.logs(process.id).text == "found\nyes\n"
            eventually(lambda: (home / "login-env.json").exists())
            assert (home / "login-env.json").stat().st_mode & 0o777 == 0o600

    def test_of_our_own_processes_holds_no_secret_of_the_caller(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MY_API_TOKEN", "canary-1234")
        with connect() as hf:
            process = hf.run("echo $MY_API_TOKEN; sleep 60")
            status = hf.status()
            for role in ("pid", "keeper_pid", "anchor_pid"):
                assert b"canary" not in Path(f"/proc/{status[role]}/environ").read_bytes()
            hf.wait_for([process.id], until="output", after=0)
            assert hf.logs(process.id).text == "canary-1234\n"
        assert b"canary" not in (home / "store.db").read_bytes()
        assert b"canary" not in (home / "daemon.log").read_bytes()

    def test_of_a_terminal_is_neutral(self, hf: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "weird")
        monkeypatch.setenv("COLUMNS", "7")
        process = hf.run("echo $TERM; tty; stty size", pty=True, size=(100, 40))
        hf.wait(process.id)
        term, tty, size = hf.logs(process.id).text.split("\n")[:3]
        assert (term, size) == ("xterm-256color", "40 100")
        assert tty.startswith("/dev/pts/")


def test_the_umask_is_the_callers(hf: Client, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        process = hf.run("umask", cwd=tmp_path)
    finally:
        os.umask(before)
    hf.wait(process.id)
    assert hf.logs(process.id).text == "0027\n"
