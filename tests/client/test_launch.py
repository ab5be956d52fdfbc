"""Finding the daemon, or starting it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import holdfast
from holdfast.client import launch
from holdfast.errors import BadValue, Denied, HoldfastError, Unreachable
from holdfast.paths import Paths, find_paths
from tests.support import content_of, eventually, processes_of, run_cli


def daemons(home: Path) -> list[int]:
    def is_daemon(pid: int) -> bool:
        try:
            return b"holdfast: daemon" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False

    return [pid for pid in processes_of(str(home)) if is_daemon(pid)]


def test_fifty_first_calls_at_once_end_in_one_daemon(home: Path) -> None:
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: run_cli("ps", "--json"), range(50)))
    assert [(answer.returncode, answer.stdout) for answer in answers] == [(0, b"[]\n")] * 50
    assert len(daemons(home)) == 1


def test_a_path_longer_than_a_socket_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / ("very-long-name-" * 8) / ("and-longer-still-" * 8)
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    try:
        assert run_cli("run", "-c", "exit 5").returncode == 5
    finally:
        run_cli("daemon", "stop")
    eventually(lambda: not processes_of(str(home)))


def test_a_relative_home_is_the_same_instance_from_anywhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    monkeypatch.chdir(home.parent)
    monkeypatch.setenv("HOLDFAST_HOME", "home")
    with holdfast.connect() as client:
        assert client.status()["home"] == str(home)


def test_the_daemon_is_detached_and_holds_nothing_of_its_starter(home: Path) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    call = [sys.executable, "-m", "holdfast", "ps"]
    subprocess.run(call, close_fds=False, check=True, stdout=subprocess.DEVNULL, cwd=home.parent)
    os.close(write)
    assert os.read(read, 1) == b""  # nobody has the other end any more
    os.close(read)
    (pid,) = daemons(home)
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert int(fields[3]) != os.getsid(0)


def test_no_secret_of_the_caller_reaches_the_daemon_s_environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MY_TOKEN", "AWS_SECRET_ACCESS_KEY", "HOLDFAST_SESSION", "HOLDFAST_ID"):
        monkeypatch.setenv(name, "canary")
    assert run_cli("ps").returncode == 0
    (daemon,) = daemons(home)
    for pid in {daemon, *processes_of(str(home))}:
        variables = content_of(Path(f"/proc/{pid}/environ"))
        assert b"canary" not in variables
        assert variables or pid != daemon


def test_a_stale_socket_is_no_obstacle(home: Path) -> None:
    home.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(home / "daemon.sock"))
    assert run_cli("ps").returncode == 0


def test_a_daemon_that_cannot_start_says_why(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("max_processes = 'many")
    with pytest.raises(BadValue, match=r"config\.toml"):
        holdfast.connect()


def test_a_daemon_that_dies_at_once_leaves_its_last_words(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = home.parent / "python"
    broken.write_text("#!/bin/sh\necho 'the disk is on fire' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(Unreachable, match="the disk is on fire") as failed:
        holdfast.connect()
    assert "daemon.log" in failed.value.next


def test_a_home_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HoldfastError, match="cannot use"):
        holdfast.connect(home=tmp_path / "file" / "home")


def test_a_daemon_of_another_user_is_not_spoken_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = Paths(str(tmp_path), str(tmp_path))
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(paths.socket)
        stranger.listen()
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
        with pytest.raises(Denied):
            launch.find(paths)


def test_a_daemon_that_does_not_greet_is_said_to_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.client.link.GREET_LIMIT", 0.1)
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "daemon.sock"))
        mute.listen()
        with pytest.raises(Unreachable, match=f"pid {os.getpid()}"):
            holdfast.connect(home=tmp_path)


def test_without_a_home_the_directories_of_the_desktop_are_used() -> None:
    paths = find_paths({"XDG_STATE_HOME": "/state", "XDG_RUNTIME_DIR": "/run/user/7"})
    assert (paths.home, paths.socket) == ("/state/holdfast", "/run/user/7/holdfast/daemon.sock")


def test_a_test_that_names_no_instance_does_not_find_that_of_the_user() -> None:
    found = find_paths({name: value for name, value in os.environ.items() if name != "HOLDFAST_HOME"})
    assert {found.home, found.runtime} == {f"{os.environ['HOME']}/state/holdfast"}
