"""Sandboxes of Daytona (daytona.io). As a program: their bridge.

The relay runs on a terminal of the sandbox, over one websocket. Commands of a session would need a request for each
piece of input, have no end of input, and no notice of their end. A terminal has faults of its own: the service drops a
connection that is too slow, and output that it has not sent when the program ends; `text_stream` deals with both. A
terminal outlives its connection: the relay on it ends a minute after its bridge is gone.
"""

from __future__ import annotations

import math
import os
import queue
import shlex
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

from holdfast.places.backends.options import Rule, a_flag, a_text, a_time, a_whole_number
from holdfast.places.clouds import DEFAULT_TIMEOUT, CloudBackend
from holdfast.places.clouds.bridge import BridgeFailed, CloudClient, CloudSession, SandboxEnded, leave, main
from holdfast.places.relay.text_stream import START

_COMMAND_TIMEOUT = 60
#: Of a copy of the runtime, about 10 MiB.
_UPLOAD_TIMEOUT = 240
#: Until a sandbox is up; the first use of an image builds it.
_UP_TIMEOUT = 240
#: Between the start of a shell and the first line of the program that replaces it.
_SHELL_TIMEOUT = 60
_CONNECT_ATTEMPTS = 40
#: The service refuses a message of more than 64 KiB.
_LARGEST_MESSAGE = 32 << 10
#: When the command fails, it waits until the reason was sent.
_SCRIPT = 'rm -f "$0"; COMMAND || { code=$?; sleep 1; exit $code; }\n'
#: States of a sandbox whose processes have ended.
_ENDED = ("stopping", "stopped", "archiving", "archived", "destroying", "destroyed")
#: Options, and how the SDK calls them.
_RESOURCES = {"cpus": "cpu", "memory": "memory", "disk": "disk"}


class DaytonaBackend(CloudBackend):
    kind = package = "daytona"
    module = "holdfast.places.clouds.daytona"
    image = "image"
    key_variable = "DAYTONA_API_KEY"
    rules: ClassVar[dict[str, Rule]] = {
        "snapshot": (a_text("the name of a snapshot", r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}"), None),
        "image": (a_text("the name of an image", r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,1023}"), None),
        "cpus": (a_whole_number(1, 256, "a whole number of processors"), None),
        "memory": (a_whole_number(1, 4096, "a whole number of gibibytes"), None),
        "disk": (a_whole_number(1, 4096, "a whole number of gibibytes"), None),
        "user": (a_text("the name of a user", r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"), None),
        "internet": (a_flag, True),
        "target": (a_text("the name of a region", r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"), None),
        "api_url": (a_text("an address that begins with https:// or http://", r"https?://[^\s]{1,500}"), None),
        "timeout": (a_time(60, 86400), DEFAULT_TIMEOUT),
    }


class DaytonaSession(CloudSession):
    is_terminal = True

    def __init__(self, client: DaytonaClient, sandbox: Any) -> None:
        self._client = client
        self._sandbox = sandbox
        self._terminal: Any = None
        self._output: Iterator[bytes] = iter(())
        self._sending = threading.Lock()
        self.name = str(sandbox.id)

    def execute(self, command: str) -> tuple[int, str, str]:
        done = self._sandbox.process.exec(command, timeout=_COMMAND_TIMEOUT)
        return done.exit_code, done.result, done.result

    def upload(self, path: str, data: bytes) -> None:
        self.run(f"mkdir -p {shlex.quote(os.path.dirname(path))}")
        self._sandbox.fs.upload_file(data, path, timeout=_UPLOAD_TIMEOUT)

    def start(self, command: str) -> None:
        """A file has the command: what a shell does with a long line that is typed is not certain."""
        script = f"/tmp/holdfast-{os.urandom(8).hex()}"
        content = _SCRIPT.replace("COMMAND", command).encode()
        self._sandbox.fs.upload_file(content, script, timeout=_UPLOAD_TIMEOUT)
        self._terminal = self._open_terminal()
        self.send(f" exec sh {script}\n".encode())
        late = threading.Timer(_SHELL_TIMEOUT, leave, ["the shell in the sandbox does not start the relay"])
        late.start()
        before = b""
        events = iter(self._terminal)
        for data in events:
            before += data
            if b"\n%s\n" % START in before:
                break
        else:
            lines = before.decode(errors="replace").strip().splitlines()
            raise BridgeFailed(lines[-1] if lines else "the shell in the sandbox has ended")
        late.cancel()
        self._output = _joined(before, events)

    def _open_terminal(self) -> Any:
        """The SDK gives up when the first message takes longer than 0.1 s."""
        from daytona import DaytonaError

        for attempt in range(_CONNECT_ATTEMPTS):
            try:
                return self._sandbox.process.create_pty_session(f"holdfast-{os.urandom(8).hex()}")
            except (queue.Empty, DaytonaError) as failed:
                is_late = isinstance(failed, queue.Empty) or isinstance(failed.__cause__, queue.Empty)
                if not is_late or attempt == _CONNECT_ATTEMPTS - 1:
                    raise
        raise AssertionError

    def send(self, text: bytes) -> None:
        with self._sending:
            for at in range(0, len(text), _LARGEST_MESSAGE):
                self._terminal.send_input(text[at : at + _LARGEST_MESSAGE])

    def receive(self) -> Iterator[bytes]:
        return self._output

    def prolong(self) -> None:
        from daytona import DaytonaNotFoundError

        try:
            self._sandbox.refresh_activity()
        except DaytonaNotFoundError:
            self._client.check_exists(self.name)
            raise


def _joined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _state(sandbox: Any) -> str:
    return "unknown" if sandbox.state is None else str(sandbox.state.value)


class DaytonaClient(CloudClient):
    key_variable = DaytonaBackend.key_variable

    def __init__(self, options: dict[str, Any], key: str) -> None:
        super().__init__(options, key)
        from daytona import Daytona, DaytonaConfig

        self._daytona = Daytona(DaytonaConfig(api_key=key, api_url=options["api_url"], target=options["target"]))

    def connect(self, name: str) -> CloudSession:
        from daytona import DaytonaNotFoundError

        try:
            found = self._daytona.get(name)
        except DaytonaNotFoundError:
            self.check_exists(name)
            raise
        state = _state(found)
        if state in _ENDED:
            raise SandboxEnded(f"the sandbox {name} is {state}")
        if state == "paused":
            found.start(_UP_TIMEOUT)
        elif state != "started":
            found.wait_for_sandbox_start(_UP_TIMEOUT)
        return DaytonaSession(self, found)

    def check_exists(self, name: str) -> None:
        """Raises SandboxEnded, unless the service has it, or does not list sandboxes: then its answer means nothing."""
        from daytona import ListSandboxesQuery

        if not any(one.id == name for one in self._daytona.list(ListSandboxesQuery(id=name))):
            raise SandboxEnded(f"the sandbox {name} has ended")

    def make(self, labels: dict[str, str]) -> CloudSession:
        from daytona import CreateSandboxFromImageParams, CreateSandboxFromSnapshotParams, Resources

        options = self.options
        common: dict[str, Any] = {
            "labels": labels,
            "os_user": options["user"],
            "network_block_all": not options["internet"],
            "auto_stop_interval": math.ceil(options["timeout"] / 60),
            "auto_delete_interval": 0,
        }
        resources = {given: options[name] for name, given in _RESOURCES.items() if options[name] is not None}
        if options["image"] is None:
            if resources:
                raise BridgeFailed("cpus, memory and disk need an image: those of a snapshot are part of it")
            params: Any = CreateSandboxFromSnapshotParams(snapshot=options["snapshot"], **common)
        else:
            image = options["image"]
            params = CreateSandboxFromImageParams(image=image, resources=Resources(**resources), **common)
        return DaytonaSession(self, self._daytona.create(params, timeout=_UP_TIMEOUT))

    def find(self, labels: dict[str, str]) -> list[tuple[str, dict[str, str], bool]]:
        from daytona import ListSandboxesQuery

        return [
            (str(one.id), dict(one.labels), _state(one) == "started")
            for one in self._daytona.list(ListSandboxesQuery(labels=labels))
            if _state(one) not in ("destroyed", "destroying")
        ]

    def end(self, name: str) -> None:
        from daytona import DaytonaNotFoundError

        try:
            self._daytona.get(name).delete(_COMMAND_TIMEOUT)
        except DaytonaNotFoundError:
            return


if __name__ == "__main__":
    main(DaytonaClient)
