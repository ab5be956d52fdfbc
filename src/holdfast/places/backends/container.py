"""Containers of Podman and Docker, by their command line.

Each place has one container. The runtimes of this instance are mounted in it read-only, and the directory of the place
read-write: the daemon connects to the keeper's sockets there and reads the logs. Everything else is asked of the relay,
which `exec` starts. The image needs neither Python nor a shell.

A container has a fixed name and the labels `holdfast.instance` and `holdfast.place`. Which one is in use is recorded
beside the directory of the place: when that one is gone, was stopped or was restarted, all its processes have ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import socket
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from holdfast import files
from holdfast.machine import proc
from holdfast.places.backend import Backend, BackendState, Options, PlaceSpec, Sandbox, Site
from holdfast.places.backends.container_options import CONTAINER_RULES
from holdfast.places.backends.engine import INSTANCE_LABEL, PLACE_LABEL, PULL_BUDGET, Container, Engine, EngineFailed
from holdfast.places.backends.options import check_options
from holdfast.places.base import PlaceGone, start_program
from holdfast.places.carry import make_runtime
from holdfast.places.local import CONTROL, FD_STORE, connect_socket
from holdfast.places.relay.link import RelayProcess, start_relay
from holdfast.places.remote import RemotePlace
from holdfast_keeper.protocol import Message

#: Where a container has the runtimes and the directory of its place.
RUNTIMES = "/.holdfast/runtimes"
PLACE = "/.holdfast/place"

_LOCK_BUDGET = 60.0
_LOCK_PAUSE = 0.05
#: A container in which that many attempts in a row have not started a relay is broken.
_MOST_FAILURES = 4
_KEEPER_BUDGET = 15.0
#: The container of a daemon that is away ends by itself that much later than the daemon would remove it.
_IDLE_GRACE = 30.0

#: Set by images for programs with their own C library; the main process of a container starts without them.
_LOADER_VARIABLES = ("LD_PRELOAD", "LD_AUDIT")
#: Of an image that names none, as engines have it.
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Variables of a container that are not meant for its commands.
_NOT_FOR_COMMANDS = ("TERM", "HOSTNAME")


def container_name(key: str, instance: str) -> str:
    return f"holdfast-{key}-{hashlib.sha256(instance.encode()).hexdigest()[:6]}"


class ContainerPlace(RemotePlace):
    def __init__(self, name: str, engine: Engine, spec: PlaceSpec, site: Site) -> None:
        super().__init__(site.directory, hello=site.hello, note=site.note, running=site.running)
        self.name = name
        self.key = spec.key
        self.idle_limit = spec.options["idle"]
        why = f"a container limits all its processes: set it in [backends.{name}]"
        self.refused = MappingProxyType({**self.refused, **dict.fromkeys(("memory", "cpus", "pids"), why)})
        self._engine = engine
        self._options = spec.options
        self._site = site
        self.container_name = container_name(spec.key, site.instance)
        self._mark_file = f"{site.directory}.container"
        #: The /proc of the container.
        self._proc = -1
        #: Attempts in a row in which the container did not run a relay, and no keeper answered.
        self._failures = 0
        self._has_run_relay = False
        self._is_discarded = False
        self.login = ContainerEnvironment(self)
        self.environ: dict[str, str] = {}

    # The keeper.

    async def connect(self) -> socket.socket:
        await self.open()
        try:
            return connect_socket(self.directory, CONTROL, socket.SOCK_STREAM)
        except OSError:  # anchor and keeper were killed, and the relay was not
            found = await self.link.call("keeper", _KEEPER_BUDGET, hello=self._site.hello)
            self._keeper_pids = set(found["pids"])
        return connect_socket(self.directory, CONTROL, socket.SOCK_STREAM)

    async def open(self) -> None:
        self._has_run_relay = False
        try:
            await super().open()
        except PlaceGone:
            raise
        except OSError:
            if self._has_run_relay and not self._has_keeper():
                self._failures += 1
            raise

    def _has_keeper(self) -> bool:
        """Whether a keeper listens: then the container is not broken, although no relay can be started."""
        try:
            connect_socket(self.directory, CONTROL, socket.SOCK_STREAM).close()
        except OSError:
            return False
        return True

    async def connect_fd_store(self) -> socket.socket:
        return connect_socket(self.directory, FD_STORE, socket.SOCK_SEQPACKET)

    async def open_relay(self) -> RelayProcess:
        if self._is_discarded:
            raise PlaceGone(f"the container {self.container_name} was removed")
        runtime = await asyncio.to_thread(make_runtime, self._site.cache)
        at = f"{RUNTIMES}/{os.path.basename(runtime.directory)}"
        async with self._alone():
            container = await self._existing()
            if container is None:
                container = await self._make(runtime.argv(at, "wait", PLACE, str(self._options["idle"] + _IDLE_GRACE)))
            await asyncio.to_thread(self._prepare, container)
            self.environ = await self._environ_of(container)
        self._open_proc(container.pid)
        self._has_run_relay = True
        relay = runtime.argv(at, "relay", PLACE, *runtime.argv(at, "keeper"))
        return await start_relay([*self._exec(container.id), *relay], self._engine.environ)

    def _exec(self, name: str) -> list[str]:
        """The words before a command that is run in a container."""
        return [self._engine.program, "exec", "--interactive", name]

    async def _environ_of(self, container: Container) -> dict[str, str]:
        """What commands start with. Raises EngineFailed."""
        image = await self._engine.image_environ(container.image)
        return _for_commands(container.environ, image or {}, self._options["env"])

    async def open_program(self, program: str, *arguments: str) -> asyncio.subprocess.Process:
        """In the container that runs."""
        runtime = await asyncio.to_thread(make_runtime, self._site.cache)
        argv = runtime.argv(f"{RUNTIMES}/{os.path.basename(runtime.directory)}", program, *arguments)
        return await start_program([*self._exec(self.container_name), *argv], self._engine.environ)

    async def _existing(self) -> Container | None:
        """The container that runs. Raises PlaceGone once when it is not the one that was in use."""
        found = await self._engine.find(self.container_name)
        if found is not None and not self._is_own(found):
            raise EngineFailed(f"the container {found.name} is not of this instance: remove it")
        known = await asyncio.to_thread(self._read_mark)
        is_broken = found is not None and self._failures >= _MOST_FAILURES
        if found is not None and (is_broken or not found.is_running):
            await self._engine.remove(found.id)
        if known is not None and (found is None or is_broken or not found.is_running or found.mark != known):
            await asyncio.to_thread(os.unlink, self._mark_file)
            self._failures = 0
            how = "is gone" if found is None else "was broken" if is_broken else "was stopped"
            raise PlaceGone(f"the container {self.container_name} {how}")
        if found is None or is_broken or not found.is_running:
            self._failures = 0
            return None
        if found.is_paused:
            raise EngineFailed(f"the container {found.name} is paused: {self._engine.program} unpause {found.name}")
        return found

    def _is_own(self, found: Container) -> bool:
        return found.labels.get(INSTANCE_LABEL) == self._site.instance

    async def _make(self, argv: list[str]) -> Container:
        image = self._options["image"]
        if await self._engine.image_environ(image) is None:
            await self._pull(image)
        await asyncio.to_thread(os.makedirs, self.directory, 0o700, True)
        found = await self._run(argv, self._options["user"])
        user = await asyncio.to_thread(_user_of, found.pid)
        if user is None or self._options["user"] or os.geteuid() in (0, user[0]):
            return found
        # The engine runs as root, and holdfast does not: processes there run as our user, or could not share files.
        await self._engine.remove(found.id)
        return await self._run(argv, f"{os.geteuid()}:{os.getegid()}")

    async def _run(self, argv: list[str], user: str | None) -> Container:
        arguments = self._arguments(argv, user)
        try:
            await self._engine.run("run", "--detach", "--rm", "--pull", "never", *arguments)
        except EngineFailed:
            # What was made and did not start would have the name.
            with contextlib.suppress(EngineFailed):
                await self._engine.remove(self.container_name)
            raise
        found = await self._engine.find(self.container_name)
        if found is None or not found.is_running:
            raise EngineFailed("the main process of the container ended at once")
        return found

    async def _pull(self, image: str) -> None:
        try:
            await self._engine.run("pull", "--quiet", image, budget=PULL_BUDGET)
        except EngineFailed as failed:
            if "short-name" not in str(failed):  # Podman guesses no registry
                raise
            what = f"the image {image} is not on this machine; to pull it, name its registry: --image REGISTRY/{image}"
            raise EngineFailed(what) from None

    def _arguments(self, argv: list[str], user: str | None) -> list[str]:
        options = self._options
        words = ["--name", self.container_name]
        words += ["--label", f"{INSTANCE_LABEL}={self._site.instance}", "--label", f"{PLACE_LABEL}={self.key}"]
        words += ["--mount", mount(self._site.cache, RUNTIMES, True), "--mount", mount(self.directory, PLACE, False)]
        for volume in options["volumes"]:
            source, target, *mode = volume.split(":")
            words += ["--mount", mount(source, target, mode == ["ro"])]
        variables = {**options["env"], **dict.fromkeys(_LOADER_VARIABLES, "")}
        words += [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
        words += ["--user", user] if user else []
        for name, flag in (("network", "--network"), ("cwd", "--workdir")):
            words += [flag, options[name]] if options[name] else []
        for name, flag in (("memory", "--memory"), ("cpus", "--cpus"), ("pids", "--pids-limit")):
            words += [flag, str(options[name])] if options[name] else []
        words += ["--read-only"] if options["read_only"] else []
        words += [word for name in options["cap_drop"] for word in ("--cap-drop", name)]
        if os.path.exists("/sys/fs/selinux/enforce"):  # else it may not use the mounted directories
            words += ["--security-opt", "label=disable"]
        return [*words, "--entrypoint", argv[0], options["image"], *argv[1:]]

    def _prepare(self, container: Container) -> None:
        """Record the container, and let its user write into the directory of the place. Raises OSError."""
        user = _user_of(container.pid)
        if user is not None and user[0] != os.stat(self.directory).st_uid:
            self._share(user)
        os.utime(self.directory)  # it is used: see the program `wait`
        files.replace(self._mark_file, json.dumps(container.mark).encode(), finish=os.fsync)

    def _share(self, user: tuple[int, int]) -> None:
        if os.geteuid() != 0:
            mine = f"{os.getuid()}:{os.getgid()}"
            raise EngineFailed(
                f"processes in the container run as user {user[0]} and cannot share files with user {os.getuid()}: "
                f'set user = "{mine}" in [backends.{self.name}]'
            )
        os.chown(self.directory, *user)

    def _read_mark(self) -> dict[str, str] | None:
        try:
            with open(self._mark_file, "rb") as file:
                value = json.load(file)
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """One daemon at a time looks for the container and makes it. Raises EngineFailed."""
        os.makedirs(os.path.dirname(self.directory), mode=0o700, exist_ok=True)
        fd = os.open(f"{self.directory}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                async with asyncio.timeout(_LOCK_BUDGET):
                    while not _locked(fd):  # noqa: ASYNC110 - the kernel does not call back
                        await asyncio.sleep(_LOCK_PAUSE)
            except TimeoutError:
                raise EngineFailed(f"another daemon has been making the container for {_LOCK_BUDGET:g} s") from None
            yield
        finally:
            os.close(fd)

    async def discard(self) -> None:
        self._is_discarded = True
        await self._engine.remove(self.container_name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._mark_file)

    def _start_directory(self, about: Message) -> str:
        self._failures = 0
        return str(about["cwd"])

    # Identity, by the /proc of the container.

    def is_alive(self, pid: int, start: int | None = None) -> bool:
        fields = self._stat(pid)
        return bool(fields) and fields[0] not in (b"Z", b"X") and start in (None, int(fields[19]))

    def _stat(self, pid: int) -> list[bytes]:
        """The fields of its `stat` from the state on; none where it is dead."""
        if self._proc < 0:
            return []
        try:
            fd = os.open(f"{pid}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        except OSError:
            return []
        try:
            return os.read(fd, 4096).rpartition(b")")[2].split()
        except OSError:
            return []
        finally:
            os.close(fd)

    def _open_proc(self, pid: int) -> None:
        if self._proc >= 0:
            os.close(self._proc)
        self._proc = os.open(f"/proc/{pid}/root/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        super().close()
        if self._proc >= 0:
            os.close(self._proc)
            self._proc = -1


class ContainerEnvironment:
    """What commands start with: the variables of the image and of the options, as with `exec`. No shell is asked."""

    is_fresh = True

    def __init__(self, place: ContainerPlace) -> None:
        self._place = place

    async def get(self, with_secrets: bool = True) -> dict[str, str]:
        home = self._place.link.about.get("home")
        return {"PATH": DEFAULT_PATH, **({"HOME": home} if home else {}), **self._place.environ}

    async def refresh(self) -> None:
        return


def mount(source: str, target: str, is_read_only: bool) -> str:
    """The value of --mount."""
    kind = "bind" if source.startswith("/") else "volume"
    fields = [f"type={kind}", f"source={source}", f"target={target}", *(["readonly"] if is_read_only else [])]
    quoted = ('"' + one.replace('"', '""') + '"' if set(one) & set(',"\n') else one for one in fields)
    return ",".join(quoted)


def _for_commands(container: dict[str, str], image: dict[str, str], given: dict[str, str]) -> dict[str, str]:
    loader = {name: value for name in _LOADER_VARIABLES if (value := given.get(name) or image.get(name))}
    kept = {name: value for name, value in container.items() if name not in (*_LOADER_VARIABLES, *_NOT_FOR_COMMANDS)}
    return {**kept, **loader, **given}


def _user_of(pid: int) -> tuple[int, int] | None:
    """User and group of a process; None where it is not on this machine."""
    text = proc.read_all(pid, "status") or b""
    ids = {line.split()[0]: int(line.split()[1]) for line in text.splitlines() if line[:4] in (b"Uid:", b"Gid:")}
    return (ids[b"Uid:"], ids[b"Gid:"]) if len(ids) == 2 else None


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class ContainerBackend(Backend):
    package: ClassVar[str]
    """The Debian package."""
    version: ClassVar[tuple[str, ...]]
    """The command that prints the version of an engine that works."""

    def check_options(self, given: Options) -> dict[str, Any]:
        return check_options(self.name, {"program": self.kind, **self.table}, given, CONTAINER_RULES)

    def _engine(self, environ: Mapping[str, str], program: str | None = None) -> Engine:
        return Engine(program or self.check_options({})["program"], environ)

    def open(self, spec: PlaceSpec, site: Site) -> ContainerPlace:
        return ContainerPlace(self.name, self._engine(site.environ, spec.options["program"]), spec, site)

    async def state(self, environ: Mapping[str, str]) -> BackendState:
        engine = self._engine(environ)
        try:
            version = (await engine.run(*self.version, may_repeat=False)).strip()
        except EngineFailed as failed:
            is_missing = "not installed" in str(failed)
            step = f"apt-get install {self.package}" if is_missing else f"try: {engine.program} info"
            return BackendState("unusable", f"{failed} ({step})", is_installed=not is_missing)
        return BackendState("ready", f"{self.kind} {version}")

    async def sandboxes(self, site_instance: str, environ: Mapping[str, str]) -> list[Sandbox]:
        found = await self._engine(environ).labelled(site_instance)
        return [Sandbox(one.labels.get(PLACE_LABEL, ""), one.name, one.is_running) for one in found]

    async def remove(self, sandbox: Sandbox, environ: Mapping[str, str]) -> None:
        await self._engine(environ).remove(sandbox.name)


class PodmanBackend(ContainerBackend):
    kind = package = "podman"
    version = ("info", "--format", "{{.Version.Version}}")


class DockerBackend(ContainerBackend):
    kind = "docker"
    package = "docker.io"
    version = ("version", "--format", "{{.Server.Version}}")
