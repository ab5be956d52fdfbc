"""Who listens where, seen on real sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.machine.listeners import listening, owner_of

LISTEN = """
import socket, sys
server = socket.create_server((sys.argv[1], 0), family=int(sys.argv[2]))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def listener(host: str, family: int) -> Iterator[tuple[int, int]]:
    """A process that listens: its pid and port."""
    call = [sys.executable, "-c", LISTEN, host, str(family)]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.communicate()


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_the_ports_of_a_process(host: str, family: int) -> None:
    with listener(host, family) as (pid, port):
        assert listening([pid]) == {port: pid}
        assert listening([os.getpid(), pid])[port] == pid
        assert port not in listening([os.getpid()])
        assert owner_of(port) == pid
    assert listening([pid]) == {}
    assert owner_of(port) is None


def test_a_connection_is_no_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getsockname()[1] not in listening([os.getpid()])
        assert server.getsockname()[1] in listening([os.getpid()])


def test_nobody_listens_nowhere() -> None:
    assert listening([]) == {}
    assert listening([2**31 - 1]) == {}
