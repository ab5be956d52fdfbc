"""Daemon and keeper at their limit of open files: the daemon refuses new clients with an error and logs that once."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client.sync import Client, connect
from holdfast.errors import LimitReached, Unreachable
from holdfast.http.responses import problem
from tests.chaos import parts
from tests.daemon.acting import kill_daemon, kill_keeper, log_text
from tests.support import eventually, is_alive, never, run_cli


def connections(home: Path, count: int) -> list[socket.socket]:
    """Clients that connect and say nothing."""
    found = []
    directory = os.open(home, os.O_PATH)
    for _ in range(count):
        sock = socket.socket(socket.AF_UNIX)
        sock.setblocking(False)
        try:
            sock.connect(f"/proc/self/fd/{directory}/daemon.sock")
        except BlockingIOError:
            sock.close()
            break
        found.append(sock)
    os.close(directory)
    return found


def limit_files(pid: int, more: int) -> tuple[int, int]:
    """Let the process open that many more files; the limits before."""
    used = min(len(os.listdir(f"/proc/{pid}/fd")) for _ in range(50))  # without those that are open for a moment
    _, hard = before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + more, hard))
    return before


@contextlib.contextmanager
def file_limit(pid: int, more: int) -> Iterator[None]:
    before = limit_files(pid, more)
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def pid_of(hf: Client) -> int:
    return int(hf.status()["pid"])


@pytest.mark.parametrize("more", [0, 2, 10])
def test_a_client_of_a_daemon_without_descriptors_gets_one_line_at_once(more: int, home: Path, hf: Client) -> None:
    process = hf.run("sleep 1000")
    pid = pid_of(hf)
    with file_limit(pid, more):
        began = time.monotonic()
        done = run_cli("ps")
        assert time.monotonic() - began < 12, "not as long as a client waits for a greeting"
        assert (done.returncode, done.stdout) == (125, b"")
        lines = done.stderr.decode().splitlines()
        assert "the daemon is at its limit of" in lines[0]
        assert f"prlimit --pid {pid} " in done.stderr.decode()
        assert len(lines) <= 2, lines
        if more > 2:
            assert [one.id for one in hf.ps()] == [process.id]  # over the connection that it has
        assert hf.kill(process.id)[0].signal == 15
        with pytest.raises(Unreachable, match="at its limit of"):
            connect("another")
    assert log_text(home).count("daemon-start") == 1
    with connect("another") as other:
        assert pid_of(other) == pid


def test_over_http_it_is_a_503_with_a_problem(home: Path, hf: Client) -> None:
    host, port = hf.http("open")["url"].removeprefix("http://").split(":")
    with file_limit(pid_of(hf), 0):
        for over_tcp in (True, False):
            connection = http.client.HTTPConnection(host, int(port), timeout=10) if over_tcp else over_socket(home)
            connection.request("GET", "/api/v1/processes")
            response = connection.getresponse()
            assert (response.status, response.getheader("content-type")) == (503, "application/problem+json")
            found = json.loads(response.read())
            assert "at its limit of" in found["detail"]
            assert found == problem(Unreachable(found["detail"], next=found["next"]))
            connection.close()
        with pytest.raises(Unreachable, match="at its limit of"):
            connect(url=f"http://{host}:{port}")
    with connect(url=f"http://{host}:{port}") as over_http:
        assert over_http.ps() == []


def over_socket(home: Path) -> http.client.HTTPConnection:
    """HTTP on the Unix socket."""
    connection = http.client.HTTPConnection("localhost", timeout=10)
    (connection.sock,) = connections(home, 1)
    connection.sock.settimeout(10)
    return connection


def test_clients_that_say_nothing_delay_no_refusal(home: Path, hf: Client) -> None:
    with file_limit(pid_of(hf), 0):
        crowd = connections(home, 300)
        began = time.monotonic()
        with pytest.raises(Unreachable, match="at its limit of"):
            connect("another")
        assert time.monotonic() - began < 12, "not as long as a client waits for a greeting"
        for sock in crowd:
            sock.close()


def test_starts_leave_the_keeper_descriptors_for_all_else(home: Path, hf: Client) -> None:
    keeper = int(hf.status()["keeper_pid"])
    with file_limit(keeper, 60):
        started: list[str] = []
        with contextlib.suppress(LimitReached):
            while len(started) < 60:
                started.append(hf.run("read line; echo $line", stdin=True).id)
        with pytest.raises(LimitReached, match=f"limit of open files of the keeper .pid {keeper}"):
            hf.run("true")
        pid = kill_daemon(hf)
        assert len(hf.ps()) == len(started) > 2
        for one in started[1:]:
            hf.send(one, "there", enter=True)
            assert hf.wait(one).exit_code == 0
        assert hf.kill(started[0])[0].signal == 15
        assert hf.run("true").id
        status = hf.status()
        assert (status["keeper_pid"], status["pid"] != pid) == (keeper, True)
        assert "Traceback" not in (home / "place/keeper.log").read_text()


def keeper_peers(home: Path, count: int) -> list[socket.socket]:
    peers = [socket.socket(socket.AF_UNIX) for _ in range(count)]
    for peer in peers:
        peer.connect(f"{home}/place/keeper.sock")
    return peers


def test_a_keeper_without_descriptors_goes_on_when_it_has_some(home: Path, hf: Client) -> None:
    process = hf.run("sleep 1000")
    keeper = int(hf.status()["keeper_pid"])
    log = home / "place/keeper.log"
    with file_limit(keeper, 0):
        peers = keeper_peers(home, 2)  # they take what the last daemon leaves
        kill_daemon(hf)
        eventually(lambda: "what is due is tried again" in log.read_text())
        never(lambda: not is_alive(keeper))
    for peer in peers:
        peer.close()
    assert hf.kill(process.id)[0].signal == 15
    assert int(hf.status()["keeper_pid"]) == keeper
    assert len(log.read_text().splitlines()) == 2


def test_an_end_that_a_keeper_without_descriptors_sees_is_recorded_later(home: Path, hf: Client) -> None:
    process = hf.run("read line; exit 3", stdin=True)
    keeper = int(hf.status()["keeper_pid"])
    log = home / "place/keeper.log"
    with file_limit(keeper, 0):
        peers = keeper_peers(home, 20)  # they take what is free below the limit, and what the process leaves
        eventually(lambda: "cannot accept" in log.read_text())
        limit, _ = resource.prlimit(keeper, resource.RLIMIT_NOFILE)
        # One that was open for a moment only when the limit was set is free now: the next peer takes it.
        eventually(lambda: len(os.listdir(f"/proc/{keeper}/fd")) >= limit)
        hf.send(process.id, "there", enter=True)
        eventually(lambda: f"keeper: {process.id}: OSError" in log.read_text())
    for peer in peers:
        peer.close()
    assert hf.wait(process.id).exit_code == 3
    assert int(hf.status()["keeper_pid"]) == keeper


@pytest.mark.parametrize("pty", [False, True])
def test_a_daemon_without_descriptors_gets_those_of_a_command_later(pty: bool, home: Path, hf: Client) -> None:
    with file_limit(pid_of(hf), 2):
        process = hf.run("read line; echo got $line; exit 3", stdin=True, pty=pty)
        eventually(lambda: "descriptors-refused" in log_text(home))
    eventually(lambda: hf.status()["held"] == 1)
    keeper = hf.status()["keeper_pid"]
    kill_keeper(hf, "keeper", "anchor")  # what they had is in the daemon alone
    eventually(lambda: hf.status()["keeper_pid"] not in (None, keeper))
    hf.send(process.id, "there", enter=True)
    assert hf.wait(process.id, timeout=20).exit_code == 3
    assert "got there" in hf.logs(process.id).text


def test_a_prompt_that_comes_without_descriptors_is_seen_later(home: Path, hf: Client) -> None:
    go = home / "go"
    process = hf.run(f"until [ -e {go} ]; do sleep 0.01; done; printf 'Continue? '; read answer", stdin=True)
    daemon = pid_of(hf)
    eventually(lambda: any("pidfd" in os.readlink(fd) for fd in Path(f"/proc/{daemon}/fd").iterdir()))
    with file_limit(daemon, 0):
        go.touch()
        never(lambda: "task-failed" in log_text(home))
    assert eventually(lambda: hf.inspect(process.id).needs_input)["prompt"] == "Continue?"


def test_a_terminal_answers_queries_again_after_a_time_without_descriptors(home: Path, hf: Client) -> None:
    go, again = home / "go", home / "again"
    until = "until [ -e {} ]; do sleep 0.01; done; ".format
    ask = "printf '\\033[6n'; head -c 6 | od -An -c"
    process = hf.run(f"stty raw -echo; echo first; {until(go)}echo more; {until(again)}{ask}", pty=True)
    eventually(lambda: "first" in hf.screen(process.id).text)
    (worker,) = [
        pid for pid in parts.find(str(home), "worker") if b"screen" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    with file_limit(pid_of(hf), 0):
        os.kill(worker, signal.SIGKILL)
        go.touch()
        eventually(lambda: "worker-died" in log_text(home))
        never(lambda: "task-failed" in log_text(home))
    again.touch()
    assert hf.wait(process.id, timeout=20).exit_code == 0


@pytest.mark.full
def test_no_descriptor_for_a_connection_is_one_line_in_the_log_and_passes(home: Path) -> None:
    with connect("tests") as hf:
        pid = pid_of(hf)
        before = limit_files(pid, more=20)
        lines = log_text(home).count("\n")
        crowd = connections(home, 300)
        eventually(lambda: "accept-failed" in log_text(home))
        used = cpu_of(pid)
        process = hf.run("sleep 2")
        assert hf.wait(process.id, timeout=20).exit_code == 0  # a client that is connected is served
        assert log_text(home).count("accept") == 1
        assert log_text(home).count("\n") - lines < 10, log_text(home)[-2000:]
        assert cpu_of(pid) - used < 1.0
        for sock in crowd:
            sock.close()
        with connect("tests") as other:
            assert other.ps() == []
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        hf.stop_daemon()


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
