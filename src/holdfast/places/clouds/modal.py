"""Sandboxes of Modal (modal.com). As a program: their bridge.

Modal has no call that prolongs a sandbox. It ends one that is idle for `timeout`: in which no command of its `exec`
runs. The relay is such a command, and it ends a minute after its bridge is gone. `lifetime` is the limit in any case.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from holdfast.places.backends.options import Rule, a_flag, a_number, a_text, a_time
from holdfast.places.clouds import CloudBackend
from holdfast.places.clouds.bridge import BridgeFailed, CloudClient, CloudSession, SandboxEnded, main

_COMMAND_TIMEOUT = 60
#: Of a copy of the runtime, about 10 MiB.
_UPLOAD_TIMEOUT = 240
_CHUNK = 1 << 20
_LONGEST_LIFETIME = 86400
#: The app of Modal that holds the sandboxes.
_APP = "holdfast"
_TAG = re.compile(r"[A-Za-z0-9._-]{1,63}")


class ModalBackend(CloudBackend):
    kind = package = "modal"
    module = "holdfast.places.clouds.modal"
    image = "image"
    key_variable = "MODAL_TOKEN"
    rules: ClassVar[dict[str, Rule]] = {
        "image": (a_text("the name of an image", r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,1023}"), "debian:12"),
        "app": (a_text("the name of an app", r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"), _APP),
        "environment": (a_text("the name of an environment of Modal", r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"), None),
        "lifetime": (a_time(60, _LONGEST_LIFETIME), float(_LONGEST_LIFETIME)),
        "gpu": (a_text("a GPU, such as A10G or H100:2", r"[A-Za-z0-9][A-Za-z0-9._:!+-]{0,63}"), None),
        "cpus": (a_number(0.125, 64, "a number of processors, such as 1.5"), None),
        "memory": (a_number(128, 344064, "a number of mebibytes, at least 128"), None),
        "internet": (a_flag, True),
    }

    key_step = "needs a token (modal token new)"

    def has_own_key(self, environ: Mapping[str, str]) -> bool:
        configuration = environ.get("MODAL_CONFIG_PATH") or os.path.join(environ.get("HOME", "/"), ".modal.toml")
        return os.path.isfile(configuration)


class ModalSession(CloudSession):
    def __init__(self, sandbox: Any) -> None:
        self._sandbox = sandbox
        self._process: Any = None
        self.name = str(sandbox.object_id)

    def execute(self, command: str) -> tuple[int, str, str]:
        return self._execute(command, b"", _COMMAND_TIMEOUT)

    def _execute(self, command: str, data: bytes, timeout: int) -> tuple[int, str, str]:
        process = self._sandbox.exec("sh", "-c", command, timeout=timeout)
        source = io.BytesIO(data)
        while chunk := source.read(_CHUNK):
            process.stdin.write(chunk)
            process.stdin.drain()
        process.stdin.write_eof()
        process.stdin.drain()
        output = str(process.stdout.read())
        return process.wait(), output, str(process.stderr.read())

    def upload(self, path: str, data: bytes) -> None:
        import shlex

        directory, target = shlex.quote(os.path.dirname(path)), shlex.quote(path)
        code, _, errors = self._execute(f"mkdir -p {directory} && cat > {target}", data, _UPLOAD_TIMEOUT)
        if code != 0:
            raise BridgeFailed(f"{path} in the sandbox {self.name} cannot be written: {errors}")

    def start(self, command: str) -> None:
        self._process = self._sandbox.exec("sh", "-c", f"exec {command}", text=False)

    def send(self, text: bytes) -> None:
        self._process.stdin.write(text)
        self._process.stdin.drain()

    def receive(self) -> Iterator[bytes]:
        for data in self._process.stdout:
            yield data.encode() if isinstance(data, str) else data
        errors = self._process.stderr.read()
        sys.stderr.write(errors if isinstance(errors, str) else errors.decode(errors="replace"))

    def prolong(self) -> None:
        """Only looks whether it has ended: see above."""
        if self._sandbox.poll() is not None:
            raise SandboxEnded(f"the sandbox {self.name} has ended")


class ModalClient(CloudClient):
    #: A token and its secret with a colon between. Without one, the SDK reads its own configuration.
    key_variable = ModalBackend.key_variable
    is_key_needed = False

    def __init__(self, options: dict[str, Any], key: str) -> None:
        super().__init__(options, key)
        import modal

        if not key:
            self._client = modal.Client.from_env()
            return
        token, colon, secret = key.partition(":")
        if not colon or not token or not secret:
            raise BridgeFailed("the API key of Modal is the id of a token, a colon, and its secret: ak-…:as-…")
        self._client = modal.Client.from_credentials(token, secret)

    def _app(self) -> Any:
        import modal

        name, environment = self.options["app"], self.options["environment"]
        return modal.App.lookup(name, create_if_missing=True, environment_name=environment, client=self._client)

    def connect(self, name: str) -> CloudSession:
        import modal

        try:
            found = modal.Sandbox.from_id(name, client=self._client)
            is_up = found.poll() is None
        except modal.exception.NotFoundError:
            is_up = False
        if not is_up:
            raise SandboxEnded(f"the sandbox {name} has ended")
        return ModalSession(found)

    def make(self, labels: dict[str, str]) -> CloudSession:
        import modal

        options = self.options
        made = modal.Sandbox.create(
            app=self._app(),
            image=modal.Image.from_registry(options["image"]),
            tags=_tags(labels),
            timeout=int(options["lifetime"]),
            idle_timeout=int(options["timeout"]),
            gpu=options["gpu"],
            cpu=options["cpus"],
            memory=None if options["memory"] is None else int(options["memory"]),
            block_network=not options["internet"],
            client=self._client,
        )
        return ModalSession(made)

    def find(self, labels: dict[str, str]) -> list[tuple[str, dict[str, str], bool]]:
        import modal

        listed = modal.Sandbox.list(app_id=self._app().app_id, tags=_tags(labels), client=self._client)
        return [(str(one.object_id), dict(one.get_tags()), True) for one in listed]

    def end(self, name: str) -> None:
        import modal

        try:
            modal.Sandbox.from_id(name, client=self._client).terminate()
        except modal.exception.NotFoundError:
            return


def _tags(labels: dict[str, str]) -> dict[str, str]:
    """Values that are too long or have other characters are replaced by their hash."""
    return {
        name: value if _TAG.fullmatch(value) else hashlib.sha256(value.encode()).hexdigest()[:32]
        for name, value in labels.items()
    }


if __name__ == "__main__":
    main(ModalClient)
