"""A place with a running keeper, driven step by step by a test."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from holdfast.model.lifecycle import Running
from holdfast.model.process import HeldProcess, Meta, ProcessId
from holdfast.places.backend import PlaceSpec, Site
from holdfast.places.backends.apptainer import ApptainerBackend
from holdfast.places.backends.container import ContainerBackend, ContainerPlace, DockerBackend, PodmanBackend
from holdfast.places.backends.ssh import SshBackend, SshPlace
from holdfast.places.base import ExecutionPlace, PlaceGone, start_program
from holdfast.places.carry import make_runtime
from holdfast.places.local import CONTROL, FD_STORE, LocalPlace, connect_socket
from holdfast.places.mirrored import MirroredPlace
from holdfast.places.relay.link import RelayProcess, start_relay
from holdfast.places.remote import RemotePlace
from holdfast_keeper import protocol
from tests.contracts.clouds import REAL, cloud
from tests.contracts.engines import engine
from tests.contracts.sshd import SshServer, shared_cache, shared_server
from tests.support import end_instance

T = TypeVar("T")
Message = dict[str, Any]

#: A sandbox of a service takes a while. A runtime that is made, packed and carried takes ten seconds on a busy machine,
#: and the place asks a host for up to twenty before it tries again.
_TIMEOUT = 120.0 if REAL in os.environ else 60.0


class StagedPlace:
    """`make` builds the place of an implementation in a directory."""

    def __init__(self, make: Callable[[StagedPlace], ExecutionPlace], directory: Path) -> None:
        self.home = directory
        self.processes: list[HeldProcess] = []
        self.notes: list[str] = []
        self.facts: list[Message] = []
        self.hellos: list[Message] = []
        #: Whether this side holds descriptors of the keeper.
        self.holds_here = True
        #: The command that runs Python in the place, and the environment of commands there.
        self.python = [sys.executable]
        self.environ: Mapping[str, str] = os.environ
        #: Kills a process of the place.
        self.kill: Callable[[int], object] = lambda pid: os.kill(pid, signal.SIGKILL)
        self.on_close: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._is_closed = False
        self._runner = asyncio.Runner()
        self.place = self.run(self._begin(make))
        try:
            self.until(lambda: self.hellos)
        except AssertionError:
            raise AssertionError(f"not connected: {self.place.keeper.trouble}") from None

    async def _begin(self, make: Callable[[StagedPlace], ExecutionPlace]) -> ExecutionPlace:
        place = make(self)
        self._tasks = [
            asyncio.ensure_future(place.keeper.run(self.hellos.append, self.facts.append)),
            asyncio.ensure_future(place.fd_store.run()),
        ]
        return place

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def until(self, condition: Callable[[], T | None]) -> T:
        """The condition's first true value. AssertionError when there is none in time."""

        async def check() -> T | None:
            return condition()

        return self.until_async(check)

    def until_async(self, condition: Callable[[], Awaitable[T | None]]) -> T:
        try:
            return self.run(_first_true(condition))
        except AssertionError as failed:
            raise AssertionError(f"{failed}; {self.place.keeper.trouble=}, {self.notes=}") from None

    def request(self, op: str, **arguments: Any) -> Message:
        return self.run(self.place.keeper.request(op, **arguments))

    def start(self, *argv: str, launch: Message | None = None, **meta: Any) -> HeldProcess:
        """A running process, as the daemon would know it. `launch` has further fields of its spec."""
        process_id = ProcessId(f"proc_{os.urandom(6).hex()}")
        known = Meta(process_id, " ".join(argv), argv, "/", "s", time.time(), **meta)
        spec = {
            "argv": list(argv),
            "cwd": "/",
            "env": {**self.environ, "HOLDFAST_ID": process_id, "HOLDFAST_HOME": str(self.home)},
            "umask": 0o022,
            **{name: getattr(known, name) for name in ("pty", "stdin", "split")},
            "cols": 80,
            "rows": 24,
            "log_cap": 1 << 20,
            "meta": known.to_json(),
            **(launch or {}),
        }
        born = self.request("start", id=process_id, spec=spec)["born"]
        process = HeldProcess(known, Running(born["pid"], born["at"]), group=born.get("group"))
        self.processes.append(process)
        return process

    def write(self, process: HeldProcess, data: bytes) -> None:
        self.request("write", id=process.id, data=base64.b64encode(data).decode(), at=None)

    def stop(self, process: HeldProcess) -> Message:
        return self.request("stop", id=process.id, by="test", reason="killed", signal=15, grace=5.0)

    def report_at_end(self, process: HeldProcess) -> Message:
        """The keeper's report once the output is complete and the exit is recorded."""

        async def ended() -> Message | None:
            report = await self.place.keeper.request("report", id=process.id)
            closed = all(stream["closed"] for stream in report["streams"].values())
            return report if report["exit"] is not None and closed else None

        return self.until_async(ended)

    def output(self, process: HeldProcess, stream: str = "out", offset: int = 0) -> bytes:
        with self.place.log(process.id, stream) as log:
            return log.read(offset).data

    def close(self) -> None:
        """May be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        self.run(self._gather())
        if self.on_close is not None:
            self.run(self.on_close())
        end_instance(str(self.home))
        self.run(leave(self.place))
        self._runner.close()

    async def _gather(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _first_true(condition: Callable[[], Awaitable[T | None]]) -> T:
    end = time.monotonic() + _TIMEOUT
    while not (value := await condition()):
        assert time.monotonic() < end, f"still {value!r} after {_TIMEOUT} s"
        await asyncio.sleep(0.01)
    return value


async def until_gone(place: ExecutionPlace) -> PlaceGone:
    """How the place ends. While it does not end, the connection is opened again and again, as the daemon does it."""
    while True:
        try:
            (await place.connect()).close()
        except PlaceGone as found:
            return found
        except Exception:  # noqa: BLE001 - the place is about to end
            pass
        await asyncio.sleep(0.02)


async def leave(place: ExecutionPlace) -> None:
    """As a daemon that ends: the place stays. When this returns, the program of its relay has ended, too."""
    peer = place.link._peer if isinstance(place, RemotePlace) else None
    place.close()
    if peer is not None:
        await peer.close()


def local(staged: StagedPlace) -> ExecutionPlace:
    environ = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return LocalPlace(
        str(staged.home / "place"),
        {**environ, "HOLDFAST_HOME": str(staged.home)},
        hello=HELLO,
        note=lambda event, **_: staged.notes.append(event),
        running=lambda: staged.processes,
        login_file=str(staged.home / "login-env.json"),
    )


SOURCE = str(Path(__file__).parents[2] / "src")


def carried(program: str) -> tuple[str, ...]:
    """A program that is carried, run by this interpreter as the runtime in a place would run it."""
    find = "import sys; sys.path.insert(0, sys.argv[1]); from holdfast.places.carried import main; "
    boot = f"{find}main(sys.argv[2], sys.argv[3:])"
    return sys.executable, "-I", "-S", "-c", boot, SOURCE, program


RELAY = carried("relay")
HELLO = {"version": protocol.VERSION, "log_total": None, "revive": None}


class SharedPlace(RemotePlace):
    """A place that shares its directory with this machine, as a container does; only its relay measures."""

    name, key = "shared", "shared"

    def __init__(self, staged: StagedPlace) -> None:
        super().__init__(
            str(staged.home / "place"),
            hello=HELLO,
            note=lambda event, **_: staged.notes.append(event),
            running=lambda: staged.processes,
        )

    async def open_relay(self) -> RelayProcess:
        return await start_relay([*RELAY, self.directory], {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]})

    async def open_program(self, program: str, *arguments: str) -> asyncio.subprocess.Process:
        return await start_program([*carried(program), *arguments], os.environ)

    async def connect(self) -> socket.socket:
        await self.open()
        return connect_socket(self.directory, CONTROL, socket.SOCK_STREAM)

    async def connect_fd_store(self) -> socket.socket:
        return connect_socket(self.directory, FD_STORE, socket.SOCK_SEQPACKET)


class RelayedPlace(MirroredPlace):
    """A place whose directory this side does not see, as on a host; its relay is a program of this machine."""

    name, key = "relay", "relay"

    def __init__(self, staged: StagedPlace) -> None:
        staged.holds_here = False
        super().__init__(
            str(staged.home / "mirror"),
            hello=HELLO,
            note=lambda event, **_: staged.notes.append(event),
            running=lambda: staged.processes,
        )
        self._there = str(staged.home / "there")

    async def open_relay(self) -> RelayProcess:
        return await start_relay([*RELAY, self._there], {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]})

    async def open_program(self, program: str, *arguments: str) -> asyncio.subprocess.Process:
        return await start_program([*carried(program), *arguments], os.environ)


def ssh(staged: StagedPlace, server: SshServer | None = None, **options: Any) -> SshPlace:
    """A directory of this machine, reached through a server on loopback."""
    server = server or shared_server()
    table = {"directory": str(staged.home / "there"), **server.options, **options}
    backend = SshBackend("ssh", {name: value for name, value in table.items() if value is not None})
    staged.holds_here = False
    site = Site(
        directory=str(staged.home / "mirror"),
        cache=shared_cache(),
        instance=str(staged.home),
        environ=server.environ,
        hello=HELLO,
        note=lambda event, **_: staged.notes.append(event),
        running=lambda: staged.processes,
    )
    return backend.open(PlaceSpec("ssh", "", backend.check_options({}), "ssh"), site)


def container_place(kind: str, home: Path, staged: StagedPlace | None = None, **options: Any) -> ContainerPlace:
    """A place in a container of the image with busybox. Nothing is made yet."""
    own = engine(kind)
    backend = CONTAINERS[kind](kind, {**own.options, **options})
    site = Site(
        directory=str(home / "place"),
        cache=str(own.directory / "runtimes"),
        instance=str(home),
        environ=own.environ,
        hello=HELLO,
        note=lambda event, **_: staged.notes.append(event) if staged else None,
        running=lambda: staged.processes if staged else (),
    )
    return backend.open(PlaceSpec(kind, "s", backend.check_options({}), kind), site)


def container(kind: str, **options: Any) -> Callable[[StagedPlace], ExecutionPlace]:
    """Makes a place in a container of the image with busybox."""

    def make(staged: StagedPlace) -> ExecutionPlace:
        own = engine(kind)
        place = container_place(kind, staged.home, staged, **options)
        runtime = make_runtime(str(own.directory / "runtimes"))
        argv = runtime.argv(f"/.holdfast/runtimes/{os.path.basename(runtime.directory)}", "")
        staged.python = argv[: argv.index("-c")]
        staged.environ = {"PATH": "/bin"}
        staged.kill = lambda pid: own.inside(place.container_name, "kill", "-9", str(pid))
        staged.on_close = place.discard
        return place

    return make


CONTAINERS: dict[str, type[ContainerBackend]] = {
    "podman": PodmanBackend,
    "docker": DockerBackend,
    "apptainer": ApptainerBackend,
}


#: Every implementation. One that cannot be had on a machine is skipped by its maker.
IMPLEMENTATIONS: dict[str, Callable[[StagedPlace], ExecutionPlace]] = {
    "local": local,
    "shared": SharedPlace,
    "relay": RelayedPlace,
    "ssh": ssh,
    "podman": container("podman"),
    "docker": container("docker"),
    "apptainer": container("apptainer"),
    "e2b": cloud("e2b"),
    "modal": cloud("modal"),
    "daytona": cloud("daytona"),
}
