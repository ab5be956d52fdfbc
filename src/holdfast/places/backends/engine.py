"""The client program of an engine, such as `podman` and `docker`, and what it says of containers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

INSTANCE_LABEL = "holdfast.instance"
PLACE_LABEL = "holdfast.place"

#: How long a command of an engine may take; those that load an image take longer.
_ENGINE_BUDGET = 30.0
PULL_BUDGET = 600.0
#: Pauses before further attempts, after a failure that may pass.
_PAUSES = (0.3, 1.0, 2.0)
#: What engines print when a further attempt may help.
_TRANSIENT = (
    *("timeout", "timed out", "temporarily", "try again", "connection reset", "connection refused", "unexpected eof"),
    *("is the docker daemon running", "too many requests", "service unavailable", "device or resource busy"),
    *("bad gateway", "context deadline exceeded", "no such host", "is already in use", "already in progress"),
)
#: What they print of a container or image that does not exist.
_MISSING = (
    *("no such container", "no such object", "no such image", "no such volume", "image not known"),
    "no instance found",
)
_LONGEST_ERROR = 300


class EngineFailed(OSError):
    """An engine has refused a command, or does not answer. Its text is one line."""

    def __init__(self, text: str, is_missing: bool = False) -> None:
        super().__init__(text)
        self.is_missing = is_missing
        """There is no such container or image."""


class Container(NamedTuple):
    id: str
    name: str
    labels: dict[str, str]
    is_running: bool
    is_paused: bool
    started_at: str
    pid: int
    """Of its main process, on this machine; 0 when it does not run."""
    environ: dict[str, str]
    image: str

    @property
    def mark(self) -> dict[str, str]:
        """Differs from that of each other container, and of the same one after a restart."""
        return {"id": self.id, "started_at": self.started_at}


class Engine:
    """The client program of an engine."""

    def __init__(self, program: str, environ: Mapping[str, str]) -> None:
        self.program = program
        self.environ = dict(environ)

    async def run(self, *arguments: str, budget: float = _ENGINE_BUDGET, may_repeat: bool = True) -> str:
        """What a command prints, after further attempts where that may help. Raises EngineFailed."""
        for pause in _PAUSES if may_repeat else ():
            try:
                return await self._run(arguments, budget)
            except EngineFailed as failed:
                text = str(failed).lower()
                if failed.is_missing or not any(words in text for words in _TRANSIENT):
                    raise
            await asyncio.sleep(pause)
        return await self._run(arguments, budget)

    async def _run(self, arguments: tuple[str, ...], budget: float) -> str:
        # Files, not pipes: what an engine starts in the background may keep a pipe open for ever.
        with (
            os.fdopen(os.memfd_create("output"), "r+b") as output,
            os.fdopen(os.memfd_create("errors"), "r+b") as errors,
        ):
            code = await self._outcome(arguments, budget, output, errors)
            for file in (output, errors):
                file.seek(0)
            printed, complaint = output.read(), errors.read()
        if code != 0:
            text = self.error_line((complaint or printed).decode(errors="replace"))
            is_missing = any(words in text.lower() for words in _MISSING)
            raise EngineFailed(text or f"{arguments[0]} ended with {code}", is_missing)
        return printed.decode(errors="replace")

    async def _outcome(
        self, arguments: tuple[str, ...], budget: float, output: IO[bytes], errors: IO[bytes]
    ) -> int | None:
        try:
            client = await asyncio.create_subprocess_exec(
                *(self.program, *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=self.environ,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise EngineFailed(f"{self.program} is not installed, or not in PATH") from None
        except OSError as failed:
            raise EngineFailed(f"{self.program} cannot be run: {failed.strerror}") from None
        try:
            async with asyncio.timeout(budget):
                return await client.wait()
        except TimeoutError:
            what = f"{os.path.basename(self.program)} {arguments[0]}"
            raise EngineFailed(f"{what} has not answered within {budget:g} s") from None
        finally:
            if client.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(client.pid, signal.SIGKILL)
                await client.wait()

    async def find(self, name: str) -> Container | None:
        """Raises EngineFailed."""
        try:
            return _container(json.loads(await self.run("container", "inspect", name))[0])
        except EngineFailed as failed:
            if failed.is_missing:
                return None
            raise
        except (ValueError, LookupError, TypeError) as broken:
            raise EngineFailed(f"{self.program} inspect: an answer that cannot be read ({broken!r})") from None

    async def image_environ(self, image: str) -> dict[str, str] | None:
        """The variables of an image; None where it is not on this machine."""
        try:
            config = json.loads(await self.run("image", "inspect", image))[0]["Config"]
        except EngineFailed as failed:
            if failed.is_missing:
                return None
            raise
        return _variables(config.get("Env"))

    async def remove(self, name: str) -> None:
        """Raises EngineFailed. One that does not exist is removed."""
        try:
            await self.run("rm", "--force", "--volumes", name)
        except EngineFailed as failed:
            if not failed.is_missing:
                raise

    def error_line(self, text: str) -> str:
        """The last line that an engine wrote, without what is the same in all of them."""
        lines = [line.strip() for line in text.splitlines() if line.strip() and "docker run --help'" not in line]
        line = lines[-1] if lines else ""
        for start in ("docker: ", "Error: ", "Error response from daemon: "):
            line = line.removeprefix(start)
        return printable(line)

    async def labelled(self, instance: str) -> list[Container]:
        """All containers of an instance. Raises EngineFailed."""
        listed = await self.run(
            "ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={INSTANCE_LABEL}={instance}"
        )
        found = [await self.find(one) for one in listed.split()]
        return [one for one in found if one is not None]


def _container(value: dict[str, Any]) -> Container:
    state, config = value["State"], value["Config"]
    is_paused = state.get("Status") == "paused"
    return Container(
        id=value["Id"],
        name=value["Name"].lstrip("/"),
        labels=config.get("Labels") or {},
        is_running=bool(state["Running"]) or is_paused,
        is_paused=is_paused,
        started_at=str(state["StartedAt"]),
        pid=int(state.get("Pid") or 0),
        environ=_variables(config.get("Env")),
        image=value["Image"],
    )


def _variables(words: list[str] | None) -> dict[str, str]:
    return dict(word.partition("=")[::2] for word in words or ())


def printable(line: str) -> str:
    return "".join(one if one.isprintable() else " " for one in line)[:_LONGEST_ERROR]
