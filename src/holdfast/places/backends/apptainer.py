"""Instances of Apptainer, and of Singularity, by their command line. Neither needs root or a service.

Each place has one instance. It is a container as those of Podman: the runtimes and the directory of the place are
mounted in it, and `exec` starts the relay. What differs:

An instance has no labels. Its name says of which instance of holdfast and of which place it is.

The image is a file, a directory, or an address such as `docker://debian:12`, from which a file is made once, beside the
runtimes. The image itself is never written to: changes are in an overlay, which is new with each new instance.

Nothing of the home directory and of /tmp of this machine is visible: both are directories beside that of the place.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from typing import Any

from holdfast.machine import proc
from holdfast.places.backend import Options, PlaceSpec, Sandbox, Site
from holdfast.places.backends.container import (
    DEFAULT_PATH,
    PLACE,
    RUNTIMES,
    ContainerBackend,
    ContainerPlace,
    container_name,
    mount,
)
from holdfast.places.backends.container_options import APPTAINER_RULES
from holdfast.places.backends.engine import PULL_BUDGET, Container, Engine, EngineFailed, printable
from holdfast.places.backends.options import check_options
from holdfast_keeper.protocol import Message

#: The names of the program, in the order in which they are looked for.
_PROGRAMS = ("apptainer", "singularity")
_MEBIBYTE = 1 << 20
#: What is printed when something else has failed.
_CONSEQUENCES = ("container cleanup failed", "while executing starter")
#: Variables of `exec` that are meant for its own shell.
_NOT_FOR_COMMANDS = ("PS1", "PROMPT_COMMAND", "SHLVL", "TERM", "PWD", "OLDPWD", "_")


class Apptainer(Engine):
    async def find(self, name: str) -> Container | None:
        return next((one for one in await self.instances() if one.name == name), None)

    async def instances(self) -> list[Container]:
        """All instances of this user. Raises EngineFailed."""
        printed = await self.run("instance", "list", "--json")
        try:
            return [_container(one) for one in json.loads(printed)["instances"] or ()]
        except (ValueError, LookupError, TypeError) as broken:
            raise EngineFailed(f"{self.program} instance list: an answer that cannot be read ({broken!r})") from None

    async def labelled(self, instance: str) -> list[Container]:
        found = await self.instances()
        return [one for one in found if one.name == container_name(key_of(one.name), instance)]

    async def remove(self, name: str) -> None:
        try:
            await self.run("instance", "stop", "--force", name)
        except EngineFailed as failed:
            if not failed.is_missing and await self._is_running(name):
                raise

    async def _is_running(self, name: str) -> bool:
        found = await self.find(name)
        return found is not None and found.is_running

    def error_line(self, text: str) -> str:
        """The first error that is not a consequence of another one."""
        lines = [printable(line).replace("[91m", "").replace("[0m", "").strip() for line in text.splitlines()]
        errors = [line for line in lines if line.startswith(("FATAL", "ERROR", "Error"))]
        causes = [line for line in errors if not any(words in line for words in _CONSEQUENCES)]
        line = next(iter([*causes, *errors, *(line for line in reversed(lines) if line)]), "")
        start, colon, rest = line.partition(":")
        return rest.strip() if colon and start.strip() in ("FATAL", "ERROR") else line


def _container(value: dict[str, Any]) -> Container:
    pid = int(value["pid"])
    info = proc.look(pid)
    return Container(
        id=value["instance"],
        name=value["instance"],
        labels={},
        is_running=info is not None,
        is_paused=False,
        started_at=f"{proc.boot_id()} {pid} {info.start if info else ''}",
        pid=pid if info else 0,
        environ={},
        image=str(value.get("img", "")),
    )


def key_of(name: str) -> str:
    """The place of an instance, by its name; empty for one of another program."""
    words = name.split("-")
    return words[1] if len(words) == 3 and words[0] == "holdfast" else ""


class ApptainerPlace(ContainerPlace):
    def __init__(self, name: str, engine: Engine, spec: PlaceSpec, site: Site) -> None:
        super().__init__(name, engine, spec, site)
        self._images = os.path.join(os.path.dirname(site.cache), "images")
        #: The overlay, and the home directory and /tmp of the instance.
        self._overlay, self._work = f"{site.directory}.overlay", f"{site.directory}.work"
        self.login = InstanceEnvironment(self)

    def _is_own(self, found: Container) -> bool:
        return True

    def _exec(self, name: str) -> list[str]:
        # Without a directory, it warns of that of this machine, which the container may not have.
        words = [self._engine.program, "exec", "--cleanenv", "--pwd", "/", *self._capabilities()]
        return [*words, f"instance://{name}"]

    def _capabilities(self) -> list[str]:
        """`exec` gives a command those of the user, and not those of the instance."""
        return ["--drop-caps", ",".join(self._options["cap_drop"])] if self._options["cap_drop"] else []

    async def _environ_of(self, container: Container) -> dict[str, str]:
        return dict(self._options["env"])

    async def _make(self, argv: list[str]) -> Container:
        image = await self._image()
        await asyncio.to_thread(self._remove_changes)
        for directory in (self.directory, self._work):
            await asyncio.to_thread(os.makedirs, directory, 0o700, True)
        overlay = await self._make_overlay()
        words = [*self._start_options(), *overlay, image, self.container_name]
        try:
            await self._engine.run("instance", "start", *words, budget=PULL_BUDGET)
        except EngineFailed as failed:
            if "overlay" in str(failed).lower() and self._options["overlay"] == "directory":
                raise EngineFailed(f'{failed}: set overlay = "tmpfs" in [backends.{self.name}]') from None
            raise
        found = await self._engine.find(self.container_name)
        if found is None or not found.is_running:
            raise EngineFailed(f"the instance {self.container_name} ended at once")
        return found

    async def _image(self) -> str:
        """The path of the image, which is made where it is an address. Raises EngineFailed."""
        name = self._options["image"]
        if not name.startswith("/"):
            return await self._built(name)
        if not await asyncio.to_thread(os.path.exists, name):
            raise EngineFailed(f"there is no image {name}")
        if os.path.isdir(name) and not os.path.exists(f"{name}/.singularity.d/actions/start"):
            raise EngineFailed(f"{name} is no image: {self._engine.program} build --sandbox NEW {name}")
        return str(name)

    async def _built(self, address: str) -> str:
        path = f"{self._images}/{hashlib.sha256(address.encode()).hexdigest()[:16]}.sif"
        if await asyncio.to_thread(os.path.exists, path):
            return path
        await asyncio.to_thread(os.makedirs, self._images, 0o700, True)
        made = f"{self._images}/.{self.key}-{os.getpid()}.sif"
        try:
            await self._engine.run("build", "--force", made, address, budget=PULL_BUDGET)
            await asyncio.to_thread(_publish, made, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(made)
        return path

    async def _make_overlay(self) -> list[str]:
        overlay = self._options["overlay"]
        if overlay == "tmpfs":
            return ["--writable-tmpfs"]
        if overlay == "directory":
            await asyncio.to_thread(os.mkdir, self._overlay, 0o700)
        elif isinstance(overlay, int):
            size = str(-(-overlay // _MEBIBYTE))
            await self._engine.run("overlay", "create", "--size", size, self._overlay, budget=PULL_BUDGET)
        return ["--overlay", overlay if isinstance(overlay, str) and overlay[0] == "/" else self._overlay]

    def _start_options(self) -> list[str]:
        options = self._options
        words = ["--containall", "--workdir", self._work, *self._capabilities()]
        words += ["--mount", mount(self._site.cache, RUNTIMES, True), "--mount", mount(self.directory, PLACE, False)]
        for volume in options["volumes"]:
            source, target, *mode = volume.split(":")
            words += ["--mount", mount(source, target, mode == ["ro"])]
        if options["network"] not in (None, "host"):
            words += ["--net", "--network", options["network"]]
        for name, flag in (("memory", "--memory"), ("cpus", "--cpus"), ("pids", "--pids-limit")):
            words += [flag, str(options[name])] if options[name] else []
        return [*words, *(f"--{name}" for name in ("nv", "fakeroot") if options[name])]

    def _open_proc(self, pid: int) -> None:
        # A program with the setuid bit hides what it has started: then the relay is asked.
        with contextlib.suppress(PermissionError):
            super()._open_proc(pid)

    def is_alive(self, pid: int, start: int | None = None) -> bool:
        if self._proc < 0:
            return super(ContainerPlace, self).is_alive(pid, start)
        return super().is_alive(pid, start)

    def _start_directory(self, about: Message) -> str:
        found = super()._start_directory(about)
        return str(self._options["cwd"] or about.get("home") or found)

    async def discard(self) -> None:
        await super().discard()
        await asyncio.to_thread(self._remove_changes)

    def _remove_changes(self) -> None:
        for path in (self._overlay, self._work):
            _remove(path)


def _remove(path: str) -> None:
    """Remove a file or directory. An overlay has directories that their owner may not read before that is changed."""
    for parent, names, _ in os.walk(path):
        for name in names:
            inner = os.path.join(parent, name)
            if not os.path.islink(inner):
                with contextlib.suppress(OSError):
                    os.chmod(inner, 0o700)
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
        os.unlink(path)


def _publish(made: str, path: str) -> None:
    """When this returns, the file is complete at its path, and stays so after a crash."""
    fd = os.open(made, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(made, path)


class InstanceEnvironment:
    """What commands start with: as with `exec`, which runs the scripts of the image. No login shell is asked."""

    is_fresh = True

    def __init__(self, place: ApptainerPlace) -> None:
        self._place = place
        self._known: dict[str, str] = {}
        #: What the relay said of itself that was asked.
        self._asked: Message | None = None

    async def get(self, with_secrets: bool = True) -> dict[str, str]:
        """Raises Unreachable."""
        link = self._place.link
        if self._asked is not link.about or not self._known:
            found = await link.call("environ")
            self._known = {name: value for name, value in found.items() if name not in _NOT_FOR_COMMANDS}
            self._asked = link.about
        return {"PATH": DEFAULT_PATH, **self._known, **self._place.environ}

    async def refresh(self) -> None:
        return


class ApptainerBackend(ContainerBackend):
    kind = package = "apptainer"
    version = ("version",)

    def check_options(self, given: Options) -> dict[str, Any]:
        return check_options(self.name, self.table, given, APPTAINER_RULES)

    def _engine(self, environ: Mapping[str, str], program: str | None = None) -> Apptainer:
        program = program or self.check_options({})["program"]
        path = environ.get("PATH")
        found = (name for name in _PROGRAMS if shutil.which(name, path=path))
        return Apptainer(program or next(found, _PROGRAMS[0]), environ)

    def open(self, spec: PlaceSpec, site: Site) -> ApptainerPlace:
        return ApptainerPlace(self.name, self._engine(site.environ, spec.options["program"]), spec, site)

    async def sandboxes(self, site_instance: str, environ: Mapping[str, str]) -> list[Sandbox]:
        found = await self._engine(environ).labelled(site_instance)
        return [Sandbox(key_of(one.name), one.name, one.is_running) for one in found]
