"""Sandboxes of cloud providers, by their SDKs.

The daemon never imports an SDK: a bridge (`python -m holdfast.places.clouds.NAME`, see `bridge.py`) does, in a process
of its own. It finds or makes the sandbox of a place, and connects its stdin and stdout to the relay there. A sandbox is
prolonged while a bridge is connected to it; else the provider ends it after the `timeout` that its options name.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import os
import select
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast import files
from holdfast.extras import install_hint
from holdfast.places.backend import Backend, BackendState, Options, PlaceSpec, Sandbox, Site
from holdfast.places.backends.options import Rule, a_file, a_text, a_time, check_options, variables
from holdfast.places.base import PlaceGone, end_program, start_program
from holdfast.places.carry import Runtime, make_runtime
from holdfast.places.mirrored import MirroredPlace
from holdfast.places.relay.link import RelayLink, RelayProcess, start_relay
from holdfast.places.remote import RemoteLogin
from holdfast_keeper.protocol import Message

#: Until a sandbox was made, and the runtime copied to it.
_OPEN_BUDGET = 300.0
#: Until the provider has answered any other request.
_CALL_BUDGET = 60.0
_LONGEST_ANSWER = 1 << 20
#: What a sandbox without a connection may cost at most, and how long one without processes is kept.
DEFAULT_TIMEOUT = 900.0
DEFAULT_IDLE = 900.0


class CloudFailed(OSError):
    """The provider cannot be used now. One line, which names the next step."""


#: Those of every provider. Each option with its check and its default.
_COMMON: dict[str, Rule] = {
    "api_key_file": (a_file, None),
    "api_key_command": (a_text("a command text that prints the key"), None),
    "cwd": (a_text("an absolute path in the sandbox", r"/.{0,999}"), None),
    "env": (variables, {}),
    "timeout": (a_time(10, 86400), DEFAULT_TIMEOUT),
    "idle": (a_time(1, 86400 * 30), DEFAULT_IDLE),
}


# Bridges.


def _bridge_argv(module: str, program: str) -> list[str]:
    return [sys.executable, "-P", "-m", module, program]


def _bridge_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """With what the interpreter needs to find this package again."""
    needed = {name: os.environ[name] for name in ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH") if name in os.environ}
    return {**environ, **needed}


async def _ask(module: str, program: str, request: Message, environ: Mapping[str, str]) -> Message:
    """The answer of a bridge that does one thing. Raises CloudFailed."""
    child = await asyncio.create_subprocess_exec(
        *_bridge_argv(module, program),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_bridge_environ(environ),
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(_CALL_BUDGET):
            output, _ = await child.communicate(json.dumps(request).encode() + b"\n")
    except TimeoutError:
        raise CloudFailed(f"the provider has not answered within {_CALL_BUDGET:g} s") from None
    finally:
        await end_program(child)
    return _answer(output, f"the bridge ended with {child.returncode}")


def _answer(line: bytes, otherwise: str) -> Message:
    try:
        answer = json.loads(line)
    except ValueError:
        raise CloudFailed(otherwise) from None
    if "error" in answer:
        raise CloudFailed(str(answer["error"]))
    return dict(answer)


def _read_line(source: int, budget: float) -> bytes:
    """A line that the bridge writes; the bytes behind it stay. Empty at the end. Blocks; raises TimeoutError."""
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < _LONGEST_ANSWER:
        if not select.select([source], [], [], budget)[0]:
            raise TimeoutError
        one = os.read(source, 1)
        if not one:
            return b""
        line += one
    return bytes(line)


class CloudLogin(RemoteLogin):
    """What a login shell there exports, and the variables of the options."""

    def __init__(self, link: RelayLink, more: Mapping[str, str]) -> None:
        super().__init__(link)
        self._more = more

    async def get(self, with_secrets: bool = True) -> dict[str, str]:
        return {**await super().get(with_secrets), **self._more}


class CloudPlace(MirroredPlace):
    """One sandbox. `module` is that of the bridge."""

    def __init__(self, module: str, spec: PlaceSpec, site: Site) -> None:
        super().__init__(site.directory, hello={**site.hello, "revive": None}, note=site.note, running=site.running)
        self.name, self.key = spec.backend, spec.key
        self.idle_limit = spec.options["idle"]
        self.login = CloudLogin(self.link, spec.options["env"])
        self._module = module
        self._options = spec.options
        self._site = site
        self._is_discarded = False
        #: Has the name of the sandbox in use.
        self._mark_file = f"{site.directory}.sandbox"

    async def open_relay(self) -> RelayProcess:
        if self._is_discarded:  # the next attempt makes another one
            self._is_discarded = False
            raise PlaceGone("the sandbox was ended")
        runtime = await asyncio.to_thread(make_runtime, self._site.cache)
        known = await asyncio.to_thread(self._read_mark)
        relay = await start_relay(_bridge_argv(self._module, "relay"), _bridge_environ(self._site.environ))
        try:
            await asyncio.to_thread(self._converse, relay, self._request(runtime, known))
        except BaseException:
            await end_program(relay.process)
            for fd in (relay.source, relay.target, relay.errors):
                os.close(fd)
            raise
        return relay

    def _converse(self, relay: RelayProcess, request: Message) -> None:
        """Send the request, and wait until the relay runs. Raises CloudFailed, PlaceGone."""
        os.makedirs(os.path.dirname(self.directory), mode=0o700, exist_ok=True)
        try:
            os.write(relay.target, json.dumps(request).encode() + b"\n")
            while True:
                line = _read_line(relay.source, _OPEN_BUDGET)
                answer = _answer(line, relay.error_text() or "the bridge has ended")
                if "gone" in answer:
                    os.unlink(self._mark_file)
                    raise PlaceGone(str(answer["gone"]))
                if "sandbox" in answer and answer["sandbox"] != request["sandbox"]:
                    files.replace(self._mark_file, str(answer["sandbox"]).encode(), finish=os.fsync)
                if "ready" in answer:
                    return
        except TimeoutError:
            raise CloudFailed(f"{self.name} has not answered within {_OPEN_BUDGET:g} s") from None
        except BrokenPipeError:
            raise CloudFailed(relay.error_text() or "the bridge has ended") from None

    async def open_program(self, program: str, *arguments: str) -> asyncio.subprocess.Process:
        """In the sandbox that is in use."""
        runtime = await asyncio.to_thread(make_runtime, self._site.cache)
        known = await asyncio.to_thread(self._read_mark)
        if known is None:
            raise CloudFailed("there is no sandbox")
        child = await start_program(_bridge_argv(self._module, "program"), _bridge_environ(self._site.environ))
        assert child.stdin is not None
        request = {**self._request(runtime, known), "program": [program, *arguments]}
        child.stdin.write(json.dumps(request).encode() + b"\n")
        return child

    def _request(self, runtime: Runtime, known: str | None) -> Message:
        return {**self._labels(), "sandbox": known, "runtime": runtime._asdict(), "lock": f"{self.directory}.lock"}

    def _labels(self) -> Message:
        return {
            "backend": self.name,
            "options": self._options,
            "instance": self._site.instance,
            "place": self.key,
        }

    def _read_mark(self) -> str | None:
        try:
            with open(self._mark_file, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _start_directory(self, about: Message) -> str:
        return str(about["cwd"])

    async def discard(self) -> None:
        self._is_discarded = True
        await _ask(self._module, "remove", self._labels(), self._site.environ)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._mark_file)


class CloudBackend(Backend):
    """Subclasses name their bridge, SDK and options."""

    package: ClassVar[str]
    """The distribution of the SDK, which is also the name of the extra."""
    module: ClassVar[str]
    """Of the bridge."""
    rules: ClassVar[dict[str, Rule]]
    """Further options, with checks and defaults; they replace common ones of the same name."""
    image: ClassVar[str]
    """The option that --image sets."""
    key_variable: ClassVar[str]
    """The variable of the API key that the SDK documents."""
    key_step: ClassVar[str] = (
        "needs an API key (write it to a file of mode 600, and name that as api_key_file in [backends.{name}])"
    )
    """What to do without a key."""

    def check_options(self, given: Options) -> dict[str, Any]:
        renamed = {self.image if name == "image" else name: value for name, value in given.items()}
        return check_options(self.name, self.table, renamed, {**_COMMON, **self.rules}, page="clouds")

    def open(self, spec: PlaceSpec, site: Site) -> CloudPlace:
        return CloudPlace(self.module, spec, site)

    async def state(self, environ: Mapping[str, str]) -> BackendState:
        """Whether the SDK is installed and a key is named. The provider is not asked."""
        try:
            version = importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return BackendState("unusable", f"needs the package {self.package} ({install_hint(self.package)})")
        options = self.check_options({})
        path = options["api_key_file"]
        if path is not None and not os.path.isfile(path):
            return BackendState("unusable", f"there is no file {path} (api_key_file in [backends.{self.name}])")
        if path is None and options["api_key_command"] is None and not self.has_own_key(environ):
            return BackendState("unusable", self.key_step.format(name=self.name))
        return BackendState("ready", f"{self.package} {version}")

    def has_own_key(self, environ: Mapping[str, str]) -> bool:
        """Whether the SDK finds a key without the options."""
        return self.key_variable in environ

    async def sandboxes(self, site_instance: str, environ: Mapping[str, str]) -> list[Sandbox]:
        if (await self.state(environ)).state != "ready":
            return []
        request = {"backend": self.name, "options": self.check_options({}), "instance": site_instance}
        found = await _ask(self.module, "list", request, environ)
        return [Sandbox(one["place"], one["name"], one["is_up"]) for one in found["sandboxes"]]

    async def remove(self, sandbox: Sandbox, environ: Mapping[str, str]) -> None:
        request = {"backend": self.name, "options": self.check_options({}), "sandbox": sandbox.name}
        await _ask(self.module, "remove", request, environ)
