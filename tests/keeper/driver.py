"""A client of a real keeper, in the role of the daemon."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from holdfast_keeper import bundle, protocol
from tests.support import eventually, is_alive, processes_of

_RUN = os.urandom(3).hex()


def named(name: object) -> str:
    """An id that only this run of the tests uses.

    Without a cgroup, every process of the machine with the id in its environment is a member of that tree.
    """
    return f"proc_{_RUN}_{name}"


ONE, TWO = named(1), named(2)
SRC = str(Path(protocol.__file__).parent.parent)
_MAIN = f"import sys; sys.path.insert(0, {SRC!r}); from holdfast_keeper.__main__ import main; main()"


class Refused(Exception):
    def __init__(self, error: dict[str, str]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]


class ControlConnection:
    """One control connection."""

    def __init__(self, place: str) -> None:
        self._sock = eventually(lambda: connect(place, "keeper.sock", socket.SOCK_STREAM))
        self._sock.settimeout(60)
        self._decoder = protocol.Decoder()
        self._rid = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self.facts: list[dict[str, Any]] = []

    def ask(self, op: str, **arguments: Any) -> Any:
        return self.answer(self.begin(op, **arguments))

    def begin(self, op: str, **arguments: Any) -> int:
        self._rid += 1
        self._sock.sendall(protocol.encode({"rid": self._rid, "op": op, **arguments}))
        return self._rid

    def answer(self, rid: int) -> Any:
        while rid not in self._answers:
            self._read()
        answer = self._answers.pop(rid)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["ok"]

    def fact(self, kind: str, process_id: str) -> dict[str, Any]:
        while True:
            for fact in self.facts:
                if (fact["fact"], fact["id"]) == (kind, process_id):
                    return fact
            self._read()

    def close(self) -> None:
        self._sock.close()

    def _read(self) -> None:
        data = self._sock.recv(1 << 20)
        if not data:
            raise ConnectionError("the keeper closed the connection")
        for message in self._decoder.feed(data):
            if "fact" in message:
                self.facts.append(message)
            else:
                self._answers[message["rid"]] = message


class KeeperPair:
    """An anchor and a keeper of the test's own."""

    def __init__(self, directory: Path, **environ: str) -> None:
        self.place = str(directory / "place")
        os.makedirs(self.place)
        self._environ = {**os.environ, **environ}
        self._started: list[subprocess.Popen[bytes]] = []
        self.launch()
        self.control = ControlConnection(self.place)
        self.hello()

    def launch(self) -> None:
        with open(f"{self.place}/keeper.log", "ab") as log:
            self._started.append(
                subprocess.Popen(self.command(), stderr=log, env=self._environ, start_new_session=True)
            )

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", _MAIN, self.place, *arguments]

    def hello(self, **settings: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.control.ask("hello", **settings)
        self.keeper, self.anchor = answer["pid"], answer["anchor_pid"]
        return answer

    def renew(self, release: str) -> dict[str, Any]:
        """Let anchor and keeper execute that release, and return when its keeper answers."""
        self.control.ask("renew", argv=self.command(release))
        return eventually(lambda: self._successor({self.keeper}))

    def reconnect(self) -> dict[str, Any]:
        self.control.close()
        self.control = ControlConnection(self.place)
        return self.hello()

    def kill(self, *pids: int) -> dict[str, Any]:
        """SIGKILL them, and return when a new keeper has taken over."""
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        gone = set(pids)
        eventually(lambda: not any(is_alive(pid) for pid in gone))
        if {self.keeper, self.anchor} <= gone:
            self.launch()
        return eventually(lambda: self._successor(gone))

    def _successor(self, gone: set[int]) -> dict[str, Any] | None:
        with contextlib.suppress(ConnectionError):
            hello = self.reconnect()
            return None if {hello["pid"], hello["anchor_pid"]} & gone else hello
        return None

    def start(self, process_id: str, command: str | list[str], **spec: Any) -> dict[str, Any]:
        return dict(self.control.answer(self.begin(process_id, command, **spec)))

    def begin(self, process_id: str, command: str | list[str], **spec: Any) -> int:
        """Request a start. Its answer comes later."""
        full = {
            "argv": ["/bin/bash", "-c", command] if isinstance(command, str) else command,
            "cwd": "/",
            "env": {**os.environ, "HOLDFAST_ID": process_id, "HOLDFAST_HOME": os.path.dirname(self.place)},
            "umask": 0o022,
            "pty": False,
            "cols": 120,
            "rows": 30,
            "stdin": False,
            "split": False,
            "log_cap": 64 << 20,
            "meta": {},
            **spec,
        }
        return self.control.begin("start", id=process_id, spec=full)

    def write(self, process_id: str, data: bytes, at: int | None = None) -> int:
        return int(self.control.ask("write", id=process_id, data=base64.b64encode(data).decode(), at=at)["accepted"])

    def stop(self, process_id: str, grace: float = 5.0, by: str = "tester", reason: str = "killed") -> dict[str, Any]:
        answer: dict[str, Any] = self.control.ask("stop", id=process_id, by=by, reason=reason, signal=15, grace=grace)
        return answer

    def exit_of(self, process_id: str) -> dict[str, Any]:
        """The exit slot, as soon as there is one."""

        def recorded() -> dict[str, Any] | None:
            exit_: dict[str, Any] | None = self.control.ask("report", id=process_id)["exit"]
            return exit_

        return eventually(recorded, timeout=30)

    def output(self, process_id: str, stream: str = "out") -> bytes:
        directory = bundle.find(self.place, process_id)
        assert directory is not None
        return b"".join(Path(segment.path).read_bytes() for segment in bundle.segments(directory, stream))

    def complete(self, process_id: str) -> bytes:
        """The output, once nothing can be added to it."""
        eventually(lambda: os.path.isdir(f"{self.place}/done/{process_id}"), timeout=30)
        return self.output(process_id)

    def close(self) -> None:
        for pid in (self.anchor, self.keeper):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        home = os.path.dirname(self.place)
        eventually(lambda: not _kill_all(home))
        for started in self._started:
            started.wait()
        self.control.close()


def connect(place: str, name: str, kind: socket.SocketKind) -> socket.socket | None:
    sock = socket.socket(socket.AF_UNIX, kind)
    fd = os.open(place, os.O_PATH)
    try:
        sock.connect(f"/proc/self/fd/{fd}/{name}")
    except OSError:
        sock.close()
        return None
    finally:
        os.close(fd)
    return sock


def _kill_all(home: str) -> list[int]:
    found = processes_of(home)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found
