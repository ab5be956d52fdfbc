"""Sandboxes of E2B (e2b.dev). As a program: their bridge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from holdfast.places.backends.options import Rule, a_flag, a_text
from holdfast.places.clouds import CloudBackend
from holdfast.places.clouds.bridge import LONGEST_COMPLAINT, CloudClient, CloudSession, SandboxEnded, main

_COMMAND_TIMEOUT = 60.0
#: Of a copy of the runtime, about 10 MiB.
_UPLOAD_TIMEOUT = 240.0


class E2bBackend(CloudBackend):
    kind = package = "e2b"
    module = "holdfast.places.clouds.e2b"
    image = "template"
    key_variable = "E2B_API_KEY"
    rules: ClassVar[dict[str, Rule]] = {
        "template": (a_text("the name of a template", r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}"), "base"),
        "user": (a_text("the name of a user", r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"), None),
        "internet": (a_flag, True),
        "domain": (a_text("a domain", r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}"), None),
    }


class E2bSession(CloudSession):
    def __init__(self, sandbox: Any, options: dict[str, Any]) -> None:
        self._sandbox = sandbox
        self._options = options
        self._handle: Any = None
        self.name = str(sandbox.sandbox_id)

    def execute(self, command: str) -> tuple[int, str, str]:
        from e2b import CommandExitException

        try:
            done = self._sandbox.commands.run(command, user=self._options["user"], timeout=_COMMAND_TIMEOUT)
        except CommandExitException as failed:
            done = failed
        return done.exit_code, done.stdout, done.stderr

    def upload(self, path: str, data: bytes) -> None:
        self._sandbox.files.write(path, data, user=self._options["user"], request_timeout=_UPLOAD_TIMEOUT)

    def start(self, command: str) -> None:
        self._handle = self._sandbox.commands.run(
            f"exec {command}",
            background=True,
            stdin=True,
            user=self._options["user"],
            timeout=0,
            retain_output=False,
        )

    def send(self, text: bytes) -> None:
        self._handle.send_stdin(text)

    def receive(self) -> Iterator[bytes]:
        for stdout, stderr, _ in self._handle:
            if stdout is not None:
                yield stdout.encode()
            elif stderr is not None:
                self.complaint = (self.complaint + stderr)[-LONGEST_COMPLAINT:]

    def prolong(self) -> None:
        from e2b import SandboxNotFoundException

        try:
            self._sandbox.set_timeout(int(self._options["timeout"]))
        except SandboxNotFoundException as ended:
            raise SandboxEnded(str(ended)) from None


class E2bClient(CloudClient):
    key_variable = E2bBackend.key_variable

    def _params(self) -> dict[str, Any]:
        domain = self.options["domain"]
        return {"api_key": self.key, **({"domain": domain} if domain else {})}

    def connect(self, name: str) -> CloudSession:
        from e2b import Sandbox, SandboxNotFoundException

        try:
            found = Sandbox.connect(name, timeout=int(self.options["timeout"]), **self._params())
        except SandboxNotFoundException:
            raise SandboxEnded(f"the sandbox {name} has ended") from None
        return E2bSession(found, self.options)

    def make(self, labels: dict[str, str]) -> CloudSession:
        from e2b import Sandbox

        made = Sandbox.create(
            self.options["template"],
            timeout=int(self.options["timeout"]),
            metadata=labels,
            allow_internet_access=self.options["internet"],
            lifecycle={"on_timeout": "kill"},
            **self._params(),
        )
        return E2bSession(made, self.options)

    def find(self, labels: dict[str, str]) -> list[tuple[str, dict[str, str], bool]]:
        from e2b import Sandbox, SandboxQuery, SandboxState

        pages = Sandbox.list(query=SandboxQuery(metadata=labels), **self._params())
        found = []
        while pages.has_next:
            for one in pages.next_items():
                if all(one.metadata.get(label) == value for label, value in labels.items()):
                    found.append((one.sandbox_id, dict(one.metadata), one.state == SandboxState.RUNNING))
        return found

    def end(self, name: str) -> None:
        from e2b import Sandbox

        Sandbox.kill(name, **self._params())


if __name__ == "__main__":
    main(E2bClient)
