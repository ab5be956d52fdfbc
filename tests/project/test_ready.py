"""Readiness of members with and without dependents."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

import holdfast.project
from holdfast.client.sync import Client
from tests.project.made import FOREVER, Events, load
from tests.support import free_port, run_cli


@pytest.fixture
def port() -> int:
    return free_port()


def server(port: int, pause: float = 0.5) -> str:
    code = (
        f"import socket, time; time.sleep({pause}); s = socket.create_server(('127.0.0.1', {port})); "
        "print('up'); c = [s.accept() for _ in range(1000)]"
    )
    return f"[{sys.executable!r}, '-u', '-c', \"{code}\"]"


def shop(port: int) -> str:
    return f"""
        [processes.migrate]
        command = "sleep 0.3"
        [processes.server]
        command = {server(port)}
        ready = {{ port = {port}, timeout = 20 }}
        depends_on = {{ migrate = "completed" }}
        [processes.worker]
        command = "exec 3<>/dev/tcp/127.0.0.1/{port} && {FOREVER}"
        depends_on = ["server"]
    """


def test_a_worker_waits_until_the_server_can_be_used(client: Client, tmp_path: Path, port: int) -> None:
    events = Events()
    report = holdfast.project.up(client, load(tmp_path, shop(port), "ready"), on_event=events)
    assert report.ok, report
    kinds = events.kinds("started", "completed", "ready")
    assert kinds.index(("completed", "migrate")) < kinds.index(("started", "server"))
    assert kinds.index(("ready", "server")) < kinds.index(("started", "worker"))
    assert client.inspect("ready.worker").is_running
    assert client.inspect("ready.server").ready is True
    assert holdfast.project.up(client, load(tmp_path, shop(port), "ready")).ok
    assert holdfast.project.down(client, "ready").ok


def test_up_continues_while_the_daemon_is_killed(client: Client, tmp_path: Path, port: int) -> None:
    def kill(event: holdfast.project.ProjectEvent) -> None:
        if event.kind == "waiting":
            os.kill(client.status()["pid"], signal.SIGKILL)

    report = holdfast.project.up(client, load(tmp_path, shop(port), "killed"), on_event=kill)
    assert report.ok, report
    assert holdfast.project.down(client, "killed").ok
    assert not client.ps(task="project:killed")


def test_a_process_that_ends_or_is_late_before_it_is_ready_fails(client: Client, tmp_path: Path, port: int) -> None:
    for command, code, expected in (
        ("sleep 0.2; exit 6", 6, "ended (exit 6) before it was ready"),
        (FOREVER, 124, "did not become ready in time"),
    ):
        text = f"""
            [processes.a]
            command = "{command}"
            ready = {{ port = {port}, timeout = 0.5 }}
            [processes.b]
            command = "{FOREVER}"
            depends_on = {{ a = "ready" }}
        """
        report = holdfast.project.up(client, load(tmp_path, text, f"late{code}"))
        assert report.outcomes["b"].state == "skipped"
        assert report.exit_status == code
        assert expected in report.failures[0].message


def test_detached_waits_for_readiness_without_no_wait(client: Client, tmp_path: Path, port: int) -> None:
    text = f"[processes.a]\ncommand = {server(port, 1.0)}\nready_port = {port}"
    load(tmp_path, text)
    file = str(tmp_path / "holdfast.toml")
    assert run_cli("up", "-d", "-f", file, "-p", "leaf", "--no-wait").returncode == 0
    assert client.inspect("leaf.a").ready is not True
    assert run_cli("up", "-d", "-f", file, "-p", "leaf").returncode == 0
    assert client.inspect("leaf.a").ready is True
