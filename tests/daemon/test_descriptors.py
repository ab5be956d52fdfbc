"""The daemon at its limit of open files: it says so once, and goes on by itself."""

from __future__ import annotations

import os
import resource
import socket
from pathlib import Path

import pytest

from holdfast.client.sync import connect
from tests.daemon.acting import log_text
from tests.support import eventually


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
    used = len(os.listdir(f"/proc/{pid}/fd"))
    _, hard = before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + more, hard))
    return before


@pytest.mark.full
def test_no_descriptor_for_a_connection_is_one_line_in_the_log_and_passes(home: Path) -> None:
    with connect("tests") as hf:
        pid = int(hf.status()["pid"])
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
