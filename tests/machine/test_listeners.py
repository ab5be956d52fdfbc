"""Which process listens on which port, on real sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.machine import sock_diag
from holdfast.machine.listeners import listening, listening_sockets, owner_of

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
        assert owner_of(listening_sockets("self")[port]) == pid
    assert listening([pid]) == {}
    assert port not in listening_sockets("self")


def test_without_netlink_it_is_read_from_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port, inode = server.getsockname()[1], os.fstat(server.fileno()).st_ino
        assert inode in listening_sockets("self")[port]
        assert sock_diag.listening_sockets(port) == [(port, inode)]
        monkeypatch.setattr(sock_diag, "listening_sockets", lambda: None)
        assert inode in listening_sockets("self")[port]


def test_ports_of_another_network_namespace_are_found() -> None:
    call = ["unshare", "--net", sys.executable, "-c", LISTEN, "0.0.0.0", str(int(socket.AF_INET))]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if line:  # a network namespace may not be permitted
            assert listening([process.pid]) == {int(line): process.pid}
            assert int(line) not in listening_sockets("self")
        process.communicate()


def test_a_connection_is_no_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getsockname()[1] not in listening([os.getpid()])
        assert server.getsockname()[1] in listening([os.getpid()])


def test_no_process_has_no_ports() -> None:
    assert listening([]) == {}
    assert listening([2**31 - 1]) == {}
    assert owner_of(set()) is None
