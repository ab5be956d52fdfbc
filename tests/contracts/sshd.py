"""What tests of SSH need: a real server on loopback, with keys, configuration and port of its own."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support import eventually, free_port

_SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/client_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
MaxSessions 100
{more}
"""
_CLIENT = """\
Host *
    IdentityFile {directory}/client_key
    IdentitiesOnly yes
    UserKnownHostsFile {directory}/known_hosts
    GlobalKnownHostsFile none
    StrictHostKeyChecking yes
"""


class SshServer:
    """`more` is added to the configuration of the server."""

    def __init__(self, more: str = "") -> None:
        program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            pytest.skip("sshd is not installed; scripts/test installs it when root")
        self._program = program
        self._more = more
        self.directory = Path(tempfile.mkdtemp(prefix="hf-ssh-"))
        self.port = free_port()
        for name in ("host_key", "client_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / name], check=True)
        self.trust((self.directory / "host_key.pub").read_text())
        self.config = self.directory / "config"
        self.config.write_text(_CLIENT.format(directory=self.directory))
        #: Of the client.
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "XDG_RUNTIME_DIR": str(self.directory),
        }
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)
        self.begin()

    @property
    def options(self) -> dict[str, object]:
        """Of the backend."""
        return {"host": "127.0.0.1", "port": self.port, "config": str(self.config)}

    def trust(self, key: str) -> None:
        """The client knows the server by this key."""
        (self.directory / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {key}")

    def begin(self) -> None:
        config = self.directory / "sshd_config"
        config.write_text(_SERVER.format(port=self.port, directory=self.directory, more=self._more))
        with open(self.directory / "sshd.log", "ab") as log:
            self.process = subprocess.Popen([self._program, "-D", "-e", "-f", config], stdout=log, stderr=log)
        eventually(self._listens)

    def _listens(self) -> bool:
        assert self.process.poll() is None, (self.directory / "sshd.log").read_text()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        return False

    def end(self) -> None:
        """Ends the listener, not the sessions."""
        self.process.kill()
        self.process.wait()

    def masters(self) -> list[str]:
        """The sockets of the control masters of clients."""
        return [str(path) for path in self.directory.glob("holdfast-ssh-*/*")]

    def close(self) -> None:
        for path in self.masters():
            subprocess.run(
                ["ssh", "-o", f"ControlPath={path}", "-O", "exit", "x"], capture_output=True, timeout=5, check=False
            )
        self.end()
        shutil.rmtree(self.directory, ignore_errors=True)


@functools.cache
def shared_cache() -> str:
    """Where all servers of a run find the runtime."""
    return tempfile.mkdtemp(prefix="hf-ssh-cache-")


@functools.cache
def shared_server() -> SshServer:
    """One for the whole run; `close_server` ends it."""
    return SshServer()


def close_server() -> None:
    if shared_server.cache_info().currsize:
        shared_server().close()
        shared_server.cache_clear()
    if shared_cache.cache_info().currsize:
        shutil.rmtree(shared_cache(), ignore_errors=True)
        shared_cache.cache_clear()
