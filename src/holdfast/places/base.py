"""The contract of a place. tests/contracts/ is the suite that every implementation must pass.

Pids that a place returns or takes are its own, as its keeper reports them. Only `ancestors`, `marks` and `sudo_above`
take the pid of a caller of the daemon, as the daemon's kernel reports it.
"""

from __future__ import annotations

import asyncio
import socket
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from holdfast.errors import Unsupported
from holdfast.logs.reader import CHUNK as CHUNK
from holdfast.logs.reader import Chunk as Chunk
from holdfast.logs.reader import Extent as Extent
from holdfast.logs.reader import Log as Log
from holdfast.machine.proc import ProcessInfo as ProcessInfo
from holdfast.machine.proc import Sudo as Sudo
from holdfast.model.addresses import HttpTarget
from holdfast.model.probes.prompts import Reader, Terminal
from holdfast.model.probes.usage import Track
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.places.bundles import Bundles
from holdfast.places.bundles import Measures as Measures
from holdfast.places.keeper_link import FdStore, KeeperLink, Note
from holdfast.places.keeper_link import PlaceGone as PlaceGone
from holdfast.places.keeper_link import Refused as Refused
from holdfast.records import Struct
from holdfast_keeper.protocol import Message

#: Until a program has ended that was killed.
_END_BUDGET = 5.0


class Activity(NamedTuple):
    """What a process has done in its life. It only grows while the same processes live."""

    output_bytes: int
    cpu_seconds: float | None


class InputState(NamedTuple):
    """The input of a process: how its terminal is set, and what the processes in it do about it."""

    terminal: Terminal | None
    """None for a pipe."""
    reader: Reader


class PortState(NamedTuple):
    is_own: bool
    """A process of the tree listens on the port."""
    is_foreign: bool
    """Another process listens on it."""
    foreign_pid: int | None
    """That process, where it may be seen."""


class PortOwner(NamedTuple):
    """The process that listens on a port. Its pid and program are None where they may not be seen."""

    pid: int | None
    program: str | None
    ancestors: list[int]
    """Pids from itself on."""


class CallerMarks(Struct, frozen=True):
    """What shows that a process was started by a held command."""

    group: str | None
    """The name of the cgroup of a held command that it is in."""
    held_id: str | None
    """HOLDFAST_ID in its environment."""


class HelperResult(NamedTuple):
    """How a command ended that is not held."""

    code: int
    """Negative for a signal."""
    output: str
    """The end of it."""


class Login(Protocol):
    """What the profile files of the user export in the place."""

    is_fresh: bool

    async def get(self, with_secrets: bool = True) -> dict[str, str]:
        """At once where it is cached, else when the shell has answered."""

    async def refresh(self) -> None:
        """Read it again."""


class Usage(Protocol):
    """What processes use: processor time, memory, ports."""

    tracks: dict[ProcessId, Track]
    """What was last measured of each process that was measured."""

    async def run(self) -> None:
        """Keep measuring, for ever."""

    async def fresh(self, processes: Collection[HeldProcess], max_age: float = 1.0) -> None:
        """Measure those whose figures are older than that."""

    async def rate(self, processes: Collection[HeldProcess]) -> None:
        """As fresh, and also measure what share of a processor they use at present."""

    def close(self) -> None: ...


class PortWatch(Protocol):
    async def look(self) -> PortState:
        """Cheap as long as nothing has changed since the last call."""


async def start_program(argv: Sequence[str], environ: Mapping[str, str]) -> asyncio.subprocess.Process:
    """A program of this machine whose stdin, stdout and stderr are pipes. Raises OSError."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *argv, cwd="/", env=dict(environ), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )


async def end_program(child: asyncio.subprocess.Process) -> None:
    """Kill it where it still runs, and wait for its end; not for ever, where it waits for a disk."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            child.kill()
    with suppress(TimeoutError):
        async with asyncio.timeout(_END_BUDGET):
            await child.wait()


class ExecutionPlace(Bundles):
    """Where commands run, with one keeper in it. Everything that differs between places is a method of this object."""

    name: str
    """The `backend` of process objects."""
    key: str | None = None
    """Identifies the place among all of the instance; None for this machine."""
    task: str = ""
    """The task or session whose processes run in it; empty where all share it."""
    usage: Usage
    login: Login
    default_directory: str
    """Where a command runs that names no directory. Known once `connect` has returned."""
    refused: Mapping[str, str] = MappingProxyType({})
    """Fields of a start that it cannot serve, each with the reason."""
    idle_limit: float | None = None
    """Seconds after which it is discarded while no process is in it; None for never."""
    is_mirrored: bool = False
    """Whether the bundles in its directory are copies."""

    def __init__(self, directory: str, hello: Message, note: Note, outage: float = 15.0) -> None:
        super().__init__(directory)
        self.keeper = KeeperLink(self.connect, hello, note, outage)
        self.fd_store = FdStore(self.connect_fd_store, note)

    # The keeper.

    @abstractmethod
    async def connect(self) -> socket.socket:
        """A new control stream to the keeper, which is started first where there is none.

        The place is made first where it does not exist yet. Called again whenever the last stream was cut. Raises
        OSError when the keeper cannot be reached now, PlaceGone when the place existed and does not any more: the next
        call makes it anew.
        """

    @abstractmethod
    async def connect_fd_store(self) -> socket.socket:
        """A new descriptor channel to a keeper that runs. Raises OSError when there is none."""

    @property
    @abstractmethod
    def keeper_pids(self) -> set[int]:
        """The keeper and its anchor: they adopt what a command leaves behind."""

    async def tree(self, process_id: ProcessId) -> list[int]:
        """The pids of a process's tree. Raises Refused where there is no such process, Unreachable."""
        return list((await self.keeper.request("tree", id=process_id))["pids"])

    @abstractmethod
    async def renew_keeper(self) -> None:
        """Replace a keeper of an older release by one of this release, where that keeps its commands.

        Returns when the new one has answered. Raises OSError, Refused, Unreachable.
        """

    async def discard(self) -> None:
        """End the place, where no process is in it any more. Raises OSError, Refused, HoldfastError."""
        await self.keeper.request("leave")

    # Measuring.

    @abstractmethod
    async def members(self, process_id: ProcessId) -> list[ProcessInfo]:
        """All processes of its tree. Raises Refused, Unreachable."""

    @abstractmethod
    async def command_lines(self, process_id: ProcessId) -> list[list[str]]:
        """The arguments of all processes of its tree. Raises Refused, Unreachable."""

    @abstractmethod
    async def activity(self, process: HeldProcess) -> Activity:
        """Raises Refused, Unreachable."""

    @abstractmethod
    async def wait_state(self, pid: int) -> str | None:
        """The kernel's name for what the main thread of a process does or waits for; None when unknown."""

    @abstractmethod
    def port_watch(self, process: HeldProcess, port: int) -> PortWatch:
        """Which process listens on a TCP port where this process runs."""

    @abstractmethod
    async def port_owner(self, port: int) -> PortOwner | None:
        """The process that listens on a TCP port; None when none does."""

    # Input.

    @abstractmethod
    async def terminal(self, process: HeldProcess) -> Terminal | None:
        """How its terminal is set now; None when it has none, or when that is unknown."""

    @abstractmethod
    async def input_state(self, process: HeldProcess) -> InputState | None:
        """None when it has no input, or when that is unknown. Raises Refused, Unreachable."""

    # Identity.

    @property
    @abstractmethod
    def boot_id(self) -> str:
        """Identifies the boot of the machine there: no process outlives it."""

    def is_of_earlier_boot(self, report: Message) -> bool:
        """Whether the machine there was started again since the command of this report."""
        return bool(report["born"]["boot"] != self.boot_id)

    @abstractmethod
    def is_alive(self, pid: int, start: int | None = None) -> bool:
        """Whether it lives; with `start`, whether it is still the process that started then. A zombie is dead."""

    def ancestors(self, pid: int) -> Iterator[ProcessInfo]:
        """A caller, its parent, and so on, as far as they are in this place; nothing for one that is dead.

        Only processes of this machine can call the daemon.
        """
        return iter(())

    def marks(self, pid: int) -> CallerMarks | None:
        """None for a caller that is dead, or whose marks may not be read."""
        return None

    async def sudo_above(self, pid: int) -> Sudo | None:
        """The sudo whose password helper this caller is; None where it is not one."""
        return None

    # Commands.

    @abstractmethod
    async def run_helper(
        self, argv: Sequence[str], spec: Mapping[str, Any], on_start: Callable[[int], None]
    ) -> HelperResult:
        """Run a command beside a process, with `cwd`, `env` and `umask` of its spec, in a process group of its own.

        `on_start` gets its pid. When this is cancelled, the group is killed. Raises OSError.
        """

    @abstractmethod
    async def has_address(self, host: str) -> bool | None:
        """Whether a host name stands for the machine there; None when it is not known."""

    @abstractmethod
    async def http_trouble(self, target: HttpTarget) -> str | None:
        """Why a GET from within the place is not answered with 2xx or 3xx; None when it is."""

    @abstractmethod
    async def shell_argv(self, text: str, shell: str | None, env: Mapping[str, str]) -> tuple[str, ...]:
        """The argv that runs a command text: by this shell, else by bash where the PATH has it, else by sh.

        Raises StartFailed when there is no such shell.
        """

    async def open_program(self, program: str, *arguments: str) -> asyncio.subprocess.Process:
        """Start a program of holdfast in the place, such as "files"; stdin, stdout and stderr are pipes.

        Raises OSError when the place cannot be reached now, Unsupported where it runs no such programs.
        """
        raise Unsupported(f"files cannot be copied to or from {self.name}", next="holdfast exec ID -- cat FILE")

    def sandbox_argv(
        self, cwd: str, writable: Sequence[str], network: str, shown: Mapping[str, bool] | None = None
    ) -> list[str]:
        """The program that makes the sandbox of a command, with its arguments, as the keeper runs it. Reads the disk.

        `shown` are files of holdfast that are visible all the same, each with whether it can be written.
        Raises Unsupported where there is no sandbox, BadValue for directories that cannot be in it.
        """
        raise Unsupported(f"a command of {self.name} cannot run in a sandbox", next="leave out --sandbox")

    def close(self) -> None:
        super().close()
        self.usage.close()
