"""A place that cannot be reached at all, because its backend is not installed or not configured any more.

The logs of its processes can be read where they are on this machine.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

from holdfast.errors import Unreachable
from holdfast.model.addresses import HttpTarget
from holdfast.model.probes.prompts import Terminal
from holdfast.model.probes.usage import Track
from holdfast.model.process import HeldProcess, Leftover, ProcessId
from holdfast.places.backend import Site
from holdfast.places.base import (
    Activity,
    ExecutionPlace,
    HelperResult,
    InputState,
    PortOwner,
    PortWatch,
    ProcessInfo,
)


class AbsentPlace(ExecutionPlace):
    default_directory = "/"
    boot_id = ""
    keeper_pids: set[int] = set()  # noqa: RUF012 - never changed

    def __init__(self, name: str, site: Site, why: str) -> None:
        super().__init__(site.directory, site.hello, site.note, outage=0.0)
        self.name = name
        self._why = why
        self.usage = _NoUsage()
        self.login = _NoLogin()

    def _fail(self) -> NoReturn:
        raise Unreachable(self._why, next="holdfast backends")

    async def connect(self) -> socket.socket:
        self._fail()

    async def connect_fd_store(self) -> socket.socket:
        raise OSError(self._why)

    async def renew_keeper(self) -> None:
        self._fail()

    async def members(self, process_id: ProcessId) -> list[ProcessInfo]:
        self._fail()

    async def command_lines(self, process_id: ProcessId) -> list[list[str]]:
        self._fail()

    async def activity(self, process: HeldProcess) -> Activity:
        self._fail()

    async def wait_state(self, pid: int) -> str | None:
        return None

    def port_watch(self, process: HeldProcess, port: int) -> PortWatch:
        self._fail()

    async def port_owner(self, port: int) -> PortOwner | None:
        return None

    async def terminal(self, process: HeldProcess) -> Terminal | None:
        return None

    async def input_state(self, process: HeldProcess) -> InputState | None:
        return None

    def is_alive(self, pid: int, start: int | None = None) -> bool:
        return False

    def living(self, leftovers: tuple[Leftover, ...]) -> list[int]:
        return []

    async def run_helper(
        self, argv: Sequence[str], spec: Mapping[str, Any], on_start: Callable[[int], None]
    ) -> HelperResult:
        self._fail()

    async def has_address(self, host: str) -> bool | None:
        return None

    async def http_trouble(self, target: HttpTarget) -> str | None:
        return self._why

    async def shell_argv(self, text: str, shell: str | None, env: Mapping[str, str]) -> tuple[str, ...]:
        return (shell or "sh", "-c", text)


class _NoLogin:
    is_fresh = False

    async def get(self, with_secrets: bool = True) -> dict[str, str]:
        return {}

    async def refresh(self) -> None:
        return


class _NoUsage:
    def __init__(self) -> None:
        self.tracks: dict[ProcessId, Track] = {}

    async def run(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def fresh(self, processes: Collection[HeldProcess], max_age: float = 1.0) -> None:
        return

    async def rate(self, processes: Collection[HeldProcess]) -> None:
        return

    def close(self) -> None:
        return
