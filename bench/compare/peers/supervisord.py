"""supervisord, over its XML-RPC interface: a program is added to its configuration and loaded."""

from __future__ import annotations

import http.client
import shlex
import socket
import subprocess
import xmlrpc.client
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.compare.install import python_package
from bench.compare.peer import Peer, until

_CONFIG = """\
[unix_http_server]
file=%(here)s/socket
[supervisord]
logfile=%(here)s/log
pidfile=%(here)s/pid
childlogdir=%(here)s
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[include]
files = %(here)s/conf.d/*.conf
"""
#: As good as it can be set up for the bench: the group is ended, and nothing is started again after its end.
_PROGRAM = """\
[program:{key}]
command=bash -c {text}
startsecs=0
autorestart=false
stopasgroup=true
killasgroup=true
stopwaitsecs=2
"""


def get(cache: Path) -> Callable[[Path], Peer]:
    return partial(Supervisord, python_package(cache, "supervisor") / "supervisord")


class Supervisord(Peer):
    name = "supervisord"
    asked_by = "python"

    def __init__(self, program: Path, scratch: Path) -> None:
        super().__init__(scratch)
        self._program = program
        self._count = 0

    def open(self) -> None:
        (self.scratch / "conf.d").mkdir(exist_ok=True)
        (self.scratch / "supervisord.conf").write_text(_CONFIG.replace("%(here)s", str(self.scratch)))
        self._serve()

    def _serve(self) -> None:
        argv = [str(self._program), "-n", "-c", str(self.scratch / "supervisord.conf")]
        quiet = subprocess.DEVNULL
        self._server = subprocess.Popen(argv, env=self.env, stdin=quiet, stdout=quiet, stderr=quiet)
        self._rpc = xmlrpc.client.ServerProxy("http://localhost", transport=_UnixTransport(self.scratch / "socket"))
        until(self._is_up, 0.05)

    def _is_up(self) -> bool | None:
        try:
            return bool(self._rpc.supervisor.getState()) or None
        except OSError:
            return None

    def close(self) -> None:
        self._server.terminate()
        self._server.wait(30)

    def start(self, text: str) -> str:
        self._count += 1
        key = f"p{self._count}"
        program = _PROGRAM.format(key=key, text=shlex.quote(text).replace("%", "%%"))
        (self.scratch / f"conf.d/{key}.conf").write_text(program)
        self._rpc.supervisor.reloadConfig()
        self._rpc.supervisor.addProcessGroup(key)
        until(lambda: self._info(key)["statename"] not in ("STARTING", "STOPPED") or None)
        return key

    def wait(self, key: str) -> int | None:
        until(lambda: self._info(key)["statename"] == "EXITED" or None)
        return self.code(key)

    def count(self) -> int:
        found: Any = self._rpc.supervisor.getAllProcessInfo()
        return sum(info["statename"] == "RUNNING" for info in found)

    def kill(self, key: str) -> None:
        self._rpc.supervisor.stopProcess(key)

    def manager(self) -> list[int]:
        return [self._server.pid]

    def revive(self) -> None:
        self._server.wait()
        self._serve()

    def code(self, key: str) -> int | None:
        info = self._info(key)
        return int(info["exitstatus"]) if info["statename"] == "EXITED" else None

    def _info(self, key: str) -> dict[str, Any]:
        info: Any = self._rpc.supervisor.getProcessInfo(key)
        return dict(info)


class _UnixTransport(xmlrpc.client.Transport):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self._path))
        return connection
