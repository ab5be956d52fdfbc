"""Places that are not on this machine, or whose processes this machine does not see: their relay measures for them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from holdfast.errors import HoldfastError, Unreachable
from holdfast.model.addresses import HttpTarget
from holdfast.model.probes.prompts import Terminal
from holdfast.model.probes.usage import Track
from holdfast.model.process import HeldProcess, Leftover, ProcessId
from holdfast.places.base import (
    Activity,
    ExecutionPlace,
    HelperResult,
    InputState,
    Measures,
    PortOwner,
    PortState,
    ProcessInfo,
    Refused,
)
from holdfast.places.keeper_link import Note
from holdfast.places.relay.link import RelayLink, RelayPeer, RelayProcess
from holdfast.places.relay.program import process_fields
from holdfast.places.sampler import Target, UsageSampler
from holdfast_keeper.protocol import Message

#: Without a link for that long, requests are refused and processes are shown as unreachable.
_OUTAGE = 3.0
#: Until a call is answered; some take longer for good reasons.
_LOGIN_BUDGET = 25.0
_KEEPER_BUDGET = 15.0
#: Silence after something was sent, before the peer is asked for a sign of life, and until it must have answered.
_SILENCE_LIMIT = 3.0
#: How long an answer about a living process is good for.
_LOOK_AGE = 0.2
_LOOK_BUDGET = 0.25
_MOST_STARTS = 4096


class RemoteUsage(UsageSampler):
    """As the sampler of this machine, but the relay reads the figures."""

    def __init__(self, running: Callable[[], Iterable[HeldProcess]], link: RelayLink) -> None:
        super().__init__(running, lambda: None)
        self._link = link

    def _begin(self, work: list[tuple[Target, Track]], ports_pause: float) -> asyncio.Future[None]:
        return asyncio.ensure_future(self._read_there(work))

    async def _read_there(self, work: list[tuple[Target, Track]]) -> None:
        if not work:
            return
        if not self._link.is_open:
            self._link.open_soon()
            return
        processes = [
            [target.id, target.pid, None, target.group, target.memory_group, False, False] for target, _ in work
        ]
        try:
            figures = await self._link.call("usage", processes=processes)
        except (HoldfastError, Refused, OSError):
            return  # what was measured before stays
        for target, track in work:
            if target.id in figures:
                cpu_seconds, memory, peak, ports = figures[target.id]
                track.take_cpu(cpu_seconds, time.monotonic())
                if memory is not None:
                    track.take_memory(memory, peak)
                if ports is not None:
                    track.ports = ports


class RemoteLogin:
    """The login environment of a place, read there once."""

    def __init__(self, link: RelayLink) -> None:
        self._link = link
        self._known: dict[str, str] | None = None
        self.is_fresh = False

    async def get(self, with_secrets: bool = True) -> dict[str, str]:
        """Raises Unreachable."""
        if self._known is None:
            self._known = dict(await self._link.call("login", _LOGIN_BUDGET))
            self.is_fresh = True
        return self._known

    async def refresh(self) -> None:
        """Without an answer, the last one stays."""
        with contextlib.suppress(HoldfastError, OSError):
            self._known = dict(await self._link.call("login", _LOGIN_BUDGET, refresh=True))
            self.is_fresh = True


class RemotePortWatch:
    def __init__(self, link: RelayLink, process: HeldProcess, port: int) -> None:
        self._link = link
        self._process = process_fields(process)
        self._port = port
        self._state = PortState(False, False, None)

    async def look(self) -> PortState:
        """While the place cannot be reached: what was seen last."""
        try:
            state = await self._link.call("look_at_port", process=self._process, port=self._port)
        except (HoldfastError, OSError):
            return self._state
        self._state = PortState(*state)
        return self._state


class RemotePlace(ExecutionPlace):
    """A place with a relay. Subclasses have `open_relay`, `connect` and `connect_fd_store`."""

    refused = MappingProxyType(
        {
            "sudo": "the password helper works on this machine only",
            "on_boot": "the place is not booted with this machine",
            **dict.fromkeys(("sandbox", "writable", "network"), "a sandbox exists on this machine only"),
        }
    )

    def __init__(
        self, directory: str, *, hello: Message, note: Note, running: Callable[[], Iterable[HeldProcess]]
    ) -> None:
        super().__init__(directory, hello, note, outage=_OUTAGE)
        self._hello = hello
        self._note = note
        self._loop = asyncio.get_running_loop()
        self.link = RelayLink(self.open_relay, note)
        self.link.begin = self._begin
        self.link.on_cut = self.keeper.check
        self.keeper.silence_limit = _SILENCE_LIMIT
        # The relay may hang with it, and a new connection finds out why.
        self.keeper.on_silence = self.link.cut
        self.usage = RemoteUsage(running, self.link)
        self.login = RemoteLogin(self.link)
        self.default_directory = "/"
        self._keeper_pids: set[int] = set()
        #: When each process that was looked at was started (None: it is dead), and when that was seen.
        self._starts: dict[int, tuple[int | None, float]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._look_next: set[int] = set()

    @abstractmethod
    async def open_relay(self) -> RelayProcess:
        """Make the place or reach it, and start its relay there, by `start_relay`.

        Raises OSError with one line that names the next step, or PlaceGone.
        """

    async def open(self) -> None:
        """When this returns, relay and keeper run. Raises OSError and PlaceGone."""
        await self._opened()

    async def _opened(self) -> RelayPeer:
        try:
            return await self.link.open()
        except TimeoutError as late:
            raise ConnectionError(str(late)) from late

    def hurry(self) -> None:
        """Try to reach it now, although the last attempt has just failed."""
        self.link.hurry()

    async def _begin(self, peer: RelayPeer) -> None:
        self.default_directory = self._start_directory(self.link.about)
        found = await peer.call("keeper", {"hello": self._hello}, _KEEPER_BUDGET)
        self._keeper_pids = set(found["pids"])

    def _start_directory(self, about: Message) -> str:
        """Where commands run that name no directory, by what the relay says of itself."""
        return str(about["default_directory"])

    @property
    def keeper_pids(self) -> set[int]:
        about = self.keeper.about
        return {pid for name in ("pid", "anchor_pid") if (pid := about.get(name))} | self._keeper_pids

    async def renew_keeper(self) -> None:
        await self.link.call("renew_keeper", _KEEPER_BUDGET)

    # Measuring.

    async def members(self, process_id: ProcessId) -> list[ProcessInfo]:
        return [ProcessInfo(*fields) for fields in await self.link.call("members", id=process_id)]

    async def command_lines(self, process_id: ProcessId) -> list[list[str]]:
        return list(await self.link.call("command_lines", id=process_id))

    async def activity(self, process: HeldProcess) -> Activity:
        return Activity(*await self.link.call("activity", process=process_fields(process)))

    async def wait_state(self, pid: int) -> str | None:
        try:
            return cast("str | None", await self.link.call("wait_state", pid=pid))
        except Unreachable:
            return None

    def port_watch(self, process: HeldProcess, port: int) -> RemotePortWatch:
        return RemotePortWatch(self.link, process, port)

    async def port_owner(self, port: int) -> PortOwner | None:
        found = await self.link.call("port_owner", port=port)
        return None if found is None else PortOwner(*found)

    # Input.

    async def terminal(self, process: HeldProcess) -> Terminal | None:
        try:
            found = await self.link.call("terminal", process=process_fields(process))
        except Unreachable:
            return None
        return None if found is None else Terminal(*found)

    async def input_state(self, process: HeldProcess) -> InputState | None:
        found = await self.link.call("input_state", process=process_fields(process))
        if found is None:
            return None
        terminal, reader = found
        return InputState(None if terminal is None else Terminal(*terminal), reader)

    # Identity. What is known is answered at once, and looked at again in the background.

    @property
    def boot_id(self) -> str:
        return str(self.link.about.get("boot_id", ""))

    def is_alive(self, pid: int, start: int | None = None) -> bool:
        """As it was when it was last looked at; True for one that never was."""
        known, seen_at = self._starts.get(pid, (0, 0.0))
        if time.monotonic() - seen_at > _LOOK_AGE:
            self._look_soon({pid})
        if seen_at == 0.0:
            return True
        return known is not None and start in (None, known)

    def living(self, leftovers: tuple[Leftover, ...]) -> list[int]:
        return [leftover.pid for leftover in leftovers if self.is_alive(leftover.pid, leftover.start)]

    async def sizes(self, processes: list[HeldProcess]) -> dict[ProcessId, Measures]:
        pids = {leftover.pid for process in processes for leftover in process.leftovers}
        if pids and self.link.is_open:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_BUDGET):
                    await self._look_at(pids)
        return await super().sizes(processes)

    def _look_soon(self, pids: set[int]) -> None:
        """May be called in any thread."""
        self._look_next |= pids
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._look_again)

    def _look_again(self) -> None:
        if self._look_next and self.link.is_open and (self._looking is None or self._looking.done()):
            pids, self._look_next = self._look_next, set()
            self._looking = asyncio.ensure_future(self._look_at(pids))

    async def _look_at(self, pids: Iterable[int]) -> None:
        asked = sorted(pids)
        try:
            starts = await self.link.call("starts", pids=asked)
        except (HoldfastError, OSError):
            return
        now = time.monotonic()
        if len(self._starts) > _MOST_STARTS:
            self._starts.clear()
        self._starts.update({pid: (start, now) for pid, start in zip(asked, starts, strict=True)})

    # Commands.

    async def run_helper(
        self, argv: Sequence[str], spec: Mapping[str, Any], on_start: Callable[[int], None]
    ) -> HelperResult:
        needed = {name: spec[name] for name in ("cwd", "env", "umask")}
        found = await self.link.call("run_helper", None, on_start, argv=list(argv), spec=needed)
        return HelperResult(*found)

    async def has_address(self, host: str) -> bool | None:
        try:
            return cast("bool | None", await self.link.call("has_address", host=host))
        except Unreachable:
            return None

    async def http_trouble(self, target: HttpTarget) -> str | None:
        host, port, is_secure, request = target
        try:
            found = await self.link.call(
                "http_trouble", None, target=[host, port, is_secure, request.decode("latin-1")]
            )
        except Unreachable as unreachable:
            return unreachable.message
        return cast("str | None", found)

    async def shell_argv(self, text: str, shell: str | None, env: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(await self.link.call("shell_argv", text=text, shell=shell, env=dict(env)))

    def close(self) -> None:
        super().close()
        self.link.close()
