"""The processes of an instance are named in `ps aux`, and their instance with them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from holdfast.client.sync import Client, connect
from tests.chaos.parts import find
from tests.daemon.acting import kill_keeper
from tests.support import eventually, run_cli


def shown(pid: int) -> tuple[str, str]:
    """Name and arguments, as `ps` shows them."""
    done = subprocess.run(
        ["ps", "-ww", "-o", "comm=,args=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    name, _, arguments = done.stdout.strip().partition(" ")
    return name, arguments.strip()


def check(hf: Client, home: Path) -> None:
    status = hf.status()
    name, arguments = shown(status["pid"])
    assert name == "holdfast-daemon"
    assert arguments in ("holdfast: daemon", f"holdfast: daemon {home}"), "the home is left out where it is too long"
    assert shown(status["keeper_pid"]) == ("holdfast-keeper", f"holdfast: keeper {home}/place")
    assert shown(status["anchor_pid"]) == ("holdfast-anchor", f"holdfast: anchor {home}/place")


def test_every_part_has_a_title(home: Path) -> None:
    with connect() as hf:
        hf.run("echo word; sleep 1000", watch=["word"])
        check(hf, home)
        eventually(lambda: hf.inbox())
        workers = {shown(pid)[1] for pid in find(str(home), "worker")}
        assert f"holdfast: watch {home}/place" in workers
        if hf.doctor() and find(str(home), "fork server"):
            (server,) = find(str(home), "fork server")
            assert shown(server)[1].startswith(f"holdfast: fork server {home}/place")


@pytest.mark.parametrize("role", ["keeper", "anchor"])
def test_a_successor_has_its_own_title(home: Path, role: str) -> None:
    with connect() as hf:
        before = hf.status()[f"{role}_pid"]
        kill_keeper(hf, role)
        eventually(lambda: hf.status()[f"{role}_pid"] not in (None, before))
        check(hf, home)


def test_a_command_keeps_its_own_arguments(home: Path) -> None:
    done = run_cli("run", "sh", "-c", "tr '\\0' ' ' < /proc/$$/cmdline", "holdfast: daemon")
    assert done.stdout == b"sh -c tr '\\0' ' ' < /proc/$$/cmdline holdfast: daemon "
