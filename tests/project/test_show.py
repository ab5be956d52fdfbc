"""A whole project through crashes: a server, a worker that waits for it, and a one-shot that must complete first."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import holdfast.project
from tests.cli.calling import as_json
from tests.project.made import FOREVER, Events, load, write
from tests.support import eventually, is_alive, run_cli

SHOP = f"""
    [project]
    name = "shop"
    [processes.migrate]
    command = "echo migrating >> ran; sleep 0.7; echo migrated >> ran"
    [processes.server]
    command = [{sys.executable!r}, "-u", "-c", '''
    import socket, time
    time.sleep(0.7)
    s = socket.create_server(("127.0.0.1", 0))
    print("listening on", s.getsockname()[1])
    while True: s.accept()
    ''']
    depends_on = {{ migrate = "completed" }}
    [processes.worker]
    command = "(setsid sleep 1000 &); {FOREVER}"
    depends_on = {{ server = {{ log = "listening on [0-9]+" }} }}
"""


def kill_daemon() -> None:
    """SIGKILL: the next client finds or starts a new daemon."""
    with holdfast.connect() as client:
        os.kill(client.status()["pid"], signal.SIGKILL)


def has_begun(name: str) -> bool:
    return name in [process["name"] for process in as_json("ps", "-a", "--json")]


def names(task: str = "project:shop") -> list[str]:
    return [process["name"] for process in as_json("ps", "--json", "--task", task)]


def test_up_goes_on_while_the_daemon_is_killed_at_every_step(home: Path, tmp_path: Path) -> None:
    events = Events()

    def kill_and_collect(event: holdfast.project.ProjectEvent) -> None:
        events(event)
        kill_daemon()

    with holdfast.connect() as client:
        report = holdfast.project.up(client, load(tmp_path, SHOP), on_event=kill_and_collect)
        assert report.ok, report
        assert events.members("started") == ["migrate", "server", "worker"]
        assert len(client.ps(task="project:shop")) == 2
        pids = [process.pid for process in client.ps(task="project:shop")]
        assert holdfast.project.down(client, "shop", on_event=kill_and_collect).ok
        assert events.members("ended") == ["worker", "server"]
        assert not client.ps(task="project:shop")
    assert (tmp_path / "ran").read_text() == "migrating\nmigrated\n"
    assert not any(is_alive(pid) for pid in pids if pid is not None)


def test_up_that_is_killed_is_taken_up_by_the_next(home: Path, tmp_path: Path) -> None:
    file = str(write(tmp_path, SHOP))
    for seen in ("shop.migrate", "shop.server"):
        call = [sys.executable, "-m", "holdfast", "up", "-f", file]
        with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as first:
            eventually(functools.partial(has_begun, seen))
            first.kill()
    kill_daemon()
    done = run_cli("up", "-d", "-f", file)
    assert done.returncode == 0, done
    assert sorted(names()) == ["shop.server", "shop.worker"]
    assert (tmp_path / "ran").read_text() == "migrating\nmigrated\n"
    down = run_cli("down", "-f", file)
    assert down.returncode == 0, down
    assert names() == []
    assert not [p for p in as_json("ps", "-a", "--json") if p["leftover_pids"]]


def test_down_that_is_killed_is_taken_up_by_the_next(home: Path, tmp_path: Path) -> None:
    text = """
        [processes.a]
        command = "trap 'sleep 0.5; exit' TERM; echo on; while :; do sleep 0.05; done"
        [processes.b]
        command = "trap 'sleep 0.5; exit' TERM; echo on; while :; do sleep 0.05; done"
        depends_on = ["a"]
    """
    file = str(write(tmp_path, text))
    assert run_cli("up", "-d", "-f", file, "-p", "two").returncode == 0
    with subprocess.Popen([sys.executable, "-m", "holdfast", "down", "-p", "two"], stderr=subprocess.PIPE) as first:
        assert first.stderr is not None
        assert b"b: stopping" in first.stderr.readline()
        first.kill()
    kill_daemon()
    assert run_cli("down", "-p", "two").returncode == 0
    assert names("project:two") == []
