"""One daemon per home, wherever that is, and a store that is not ours to touch."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import cast

import pytest

import holdfast
from holdfast.client.link import Failed
from holdfast.client.sync import Client, connect
from holdfast.daemon.listener.accepting import CallerAncestry
from holdfast.daemon.listener.server import ProtocolChooser
from holdfast.wire import frames
from tests.daemon.acting import is_alive, kill_daemon, told
from tests.support import end_instance, eventually


def test_a_race_of_first_calls_ends_in_one_daemon(home: Path) -> None:
    pids: list[int] = []

    def call() -> None:
        with connect() as hf:
            pids.append(hf.status()["pid"])

    threads = [threading.Thread(target=call) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(pids) == 30
    assert len(set(pids)) == 1


def test_a_second_daemon_says_ready_and_ends(hf: Client, home: Path) -> None:
    read, write = os.pipe()
    second = subprocess.run(
        [sys.executable, "-m", "holdfast.daemon", "--ready-fd", str(write)], pass_fds=[write], timeout=30, check=False
    )
    os.close(write)
    assert (second.returncode, os.read(read, 100)) == (0, b"ready\n")
    os.close(read)
    assert is_alive(hf.status()["pid"])


def test_two_homes_know_nothing_of_each_other(hf: Client, tmp_path: Path) -> None:
    hf.run("sleep 60")
    other_home = tmp_path / "other"
    with connect(home=other_home) as other:
        assert other.ps() == []
        assert other.status()["keeper_pid"] != hf.status()["keeper_pid"]
    end_instance(str(other_home))


def test_a_very_long_path_will_do(tmp_path: Path) -> None:
    home = tmp_path / ("x" * 120) / ("y" * 120)
    with connect(home=home) as hf:
        assert hf.wait(hf.run("exit 3").id).exit_code == 3
    end_instance(str(home))


def test_a_store_of_a_newer_release_is_refused_and_untouched(home: Path) -> None:
    home.mkdir(mode=0o700)
    newer = sqlite3.connect(home / "store.db")
    newer.execute("CREATE TABLE other (x)")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    before = (home / "store.db").read_bytes()
    with pytest.raises(holdfast.HoldfastError, match="version 99"):
        connect()
    assert (home / "store.db").read_bytes() == before


def test_a_configuration_that_makes_no_sense_is_said(config: Path, home: Path) -> None:
    config.write_text("max_proceses = 3\n")
    with pytest.raises(holdfast.HoldfastError, match="max_proceses"):
        connect()


def test_a_log_that_has_become_long_is_begun_anew(config: Path, home: Path) -> None:
    (home / "daemon.log").write_text("old\n" * 500_000)
    with connect() as hf:
        hf.status()
        assert (home / "daemon.log").stat().st_size < 100_000
        assert (home / "daemon.log.1").stat().st_size <= 1 << 20


def test_an_ended_process_is_forgotten_after_its_time(config: Path, home: Path) -> None:
    config.write_text("keep_ended = 3600\n")
    with connect() as hf:
        old, young = hf.wait(hf.run("echo old").id), hf.wait(hf.run("echo young").id)
        pid = hf.status()["pid"]
        hf.stop_daemon()
        eventually(lambda: not is_alive(pid))
        store = sqlite3.connect(home / "store.db")
        with store:
            store.execute(
                "UPDATE processes SET state = json_set(state, '$.known_at', 1000000.0) WHERE id = ?", (old.id,)
            )
        store.close()
        eventually(lambda: [process.id for process in hf.ps(all=True)] == [young.id])
        assert not (home / "place" / "done" / old.id).exists()
        assert (home / "place" / "done" / young.id).exists()


@pytest.mark.full
def test_a_slow_profile_is_waited_for_once_and_never_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".profile").write_text("sleep 6; export FROM_PROFILE=yes\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    with connect() as hf:
        hf.run("true")
        eventually((home / "login-env.json").exists)
        hf.stop_daemon()
        began = time.monotonic()
        process = hf.run("echo $FROM_PROFILE")
        assert time.monotonic() - began < 5.5
        hf.wait(process.id)
        assert hf.logs(process.id).text == "yes\n"


def test_a_message_with_millions_of_values_is_refused_unparsed(hf: Client, home: Path) -> None:
    hf.status()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(home / "daemon.sock"))
        sock.settimeout(30)
        sock.sendall(frames.encode({"rid": 1, "op": "hello", "version": frames.PROTOCOL_VERSION}))
        assert b'"ok"' in sock.recv(4096)
        body = b'{"rid":2,"op":"start","command":"true","labels":[' + b'"a",' * 3_000_000 + b'"a"]}'
        with contextlib.suppress(ConnectionError):
            sock.sendall(len(body).to_bytes(4, "big") + b"J" + body)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(4096) == b""
    assert hf.run(["true"]).id


def test_only_the_owner_is_let_in() -> None:
    aborted = []

    class Transport:
        def get_extra_info(self, name: str) -> Transport:
            return self

        def getsockopt(self, *_: int) -> bytes:
            return struct.pack("3i", 1, os.geteuid() + 1, 1)

        def abort(self) -> None:
            aborted.append(True)

    chooser = ProtocolChooser(cast(CallerAncestry, None), lambda transport, first, caller: None)
    chooser.connection_made(cast(asyncio.Transport, Transport()))
    assert aborted


def test_a_keeper_that_hangs_is_reported_and_readers_are_served(hf: Client) -> None:
    process = hf.run("sleep 60")
    keeper = hf.status()["keeper_pid"]
    os.kill(keeper, signal.SIGSTOP)
    try:
        assert [found.id for found in hf.ps()] == [process.id]
        assert hf.inspect(process.id).status == "running"
        assert hf.status()["log_bytes"] is None
        (check,) = [check for check in hf.doctor() if check["name"] == "keeper"]
        assert check["ok"] is False
    finally:
        os.kill(keeper, signal.SIGCONT)


def test_a_signal_that_was_cut_short_is_not_sent_twice(hf: Client) -> None:
    process = hf.run("sleep 60")
    keeper = hf.status()["keeper_pid"]
    link = hf.open_link()
    os.kill(keeper, signal.SIGSTOP)
    link.ask("kill", {"processes": [process.id], "signal": int(signal.SIGUSR1)})
    link.call("inspect", {"process": process.id})  # by now the signal has been passed on
    os.kill(keeper, signal.SIGKILL)
    (answer,) = link.receive(20)
    assert isinstance(answer, Failed)
    assert answer.error.code == "unreachable"
    link.close()
    assert hf.inspect(process.id).status == "running"


class TestWithAFullDisk:
    """Full for the daemon, by a limit on the size of its files."""

    @pytest.fixture
    def full(self, hf: Client, home: Path) -> Client:
        hf.wait(hf.run("true").id)
        eventually(lambda: (home / "store.db-wal").stat().st_size > 0)
        resource.prlimit(hf.status()["pid"], resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        return hf

    def free(self, hf: Client) -> None:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(hf.status()["pid"], resource.RLIMIT_FSIZE, unlimited)

    def test_a_start_is_answered_and_its_row_written_later(self, full: Client, home: Path) -> None:
        process = full.run("sleep 60")
        assert process.status == "running"
        assert state_in_store(home, process.id) is None
        self.free(full)
        assert '"running"' in eventually(lambda: state_in_store(home, process.id), timeout=20)

    def test_an_event_that_is_published_is_refused_in_its_own_words(self, full: Client) -> None:
        with pytest.raises(holdfast.DiskFull, match="no room to record it"):
            full.publish("build.done", {"n": 1})
        self.free(full)
        full.publish("build.done", {"n": 2})

    def test_a_process_without_a_row_is_found_again_after_a_crash(self, full: Client, home: Path) -> None:
        process = full.run("sleep 60", name="web", task="t", pty=True)
        ended = full.wait(full.run("echo out; exit 3").id)
        eventually((home / "place" / "done" / ended.id).exists)
        kill_daemon(full)
        assert told(full.inspect(process.id)) == told(process)
        assert full.inspect(ended.id).exit_code == 3
        assert '"running"' in eventually(lambda: state_in_store(home, process.id))

    def test_a_start_that_finds_no_disk_space_is_refused_and_leaves_nothing(self, hf: Client) -> None:
        keeper = hf.status()["keeper_pid"]
        before = resource.prlimit(keeper, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        with pytest.raises(holdfast.DiskFull):
            hf.run("sleep 60")
        assert hf.ps(all=True) == []
        resource.prlimit(keeper, resource.RLIMIT_FSIZE, before)
        assert hf.run("sleep 60").status == "running"

    def test_a_terminal_that_cannot_be_recorded_is_refused_and_leaves_nothing(self, hf: Client) -> None:
        resource.prlimit(hf.status()["pid"], resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        with pytest.raises(holdfast.DiskFull, match="no terminal can be created"):
            hf.run("sleep 60", pty=True)
        assert hf.ps(all=True) == []
        self.free(hf)
        assert hf.run("sleep 60", pty=True).status == "running"

    def test_an_end_is_shown_at_once_and_written_later(self, hf: Client, home: Path) -> None:
        process = hf.run("sleep 0.5; exit 3")
        hf.run("true")
        resource.prlimit(hf.status()["pid"], resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        assert hf.wait(process.id, timeout=20).exit_code == 3
        self.free(hf)

        assert eventually(lambda: '"ended"' in (state_in_store(home, process.id) or ""), timeout=20)


def state_in_store(home: Path, process_id: str) -> str | None:
    store = sqlite3.connect(home / "store.db")
    try:
        row = store.execute("SELECT state FROM processes WHERE id = ?", (process_id,)).fetchone()
    finally:
        store.close()
    return row[0] if row else None
