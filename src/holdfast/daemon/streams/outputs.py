"""Waiting for output: callers that wait for the same stream share one request to the keeper."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.errors import HoldfastError
from holdfast.model.process import ProcessId
from holdfast.places.keeper_link import KeeperLink, Refused
from holdfast.records import Struct


class Reach(NamedTuple):
    """How far a stream reaches, and whether it will ever reach further."""

    end: int
    closed: bool


class _StreamWaiter(Struct, frozen=True):
    after: int
    reached: asyncio.Future[Reach]


class Outputs:
    def __init__(self, keeper_of: Callable[[ProcessId], KeeperLink], background: BackgroundTasks) -> None:
        self._keeper_of = keeper_of
        self._background = background
        self._flows: dict[tuple[ProcessId, str], _Flow] = {}

    async def beyond(self, process_id: ProcessId, stream: str, after: int) -> Reach:
        """How far the stream reaches once it reaches beyond `after` or is closed. Raises Unreachable."""
        flow = self._flows.get((process_id, stream))
        if flow is None:
            flow = self._flows[process_id, stream] = _Flow()
            self._background.start(self._follow(process_id, stream, flow), "output")
        elif after < flow.asked_after:
            return await self._ask(process_id, stream, after)
        return await flow.wait(after)

    async def _follow(self, process_id: ProcessId, stream: str, flow: _Flow) -> None:
        """Ask the keeper while there are waiters. The last request stays open, at no cost, until there is output."""
        try:
            await asyncio.sleep(0)  # until the first waiter is in
            while flow.waiters:
                flow.asked_after = min(waiter.after for waiter in flow.waiters)
                flow.reached(await self._ask(process_id, stream, flow.asked_after))
        except HoldfastError as failed:
            flow.failed(failed)
        finally:
            self._flows.pop((process_id, stream), None)

    async def _ask(self, process_id: ProcessId, stream: str, after: int) -> Reach:
        try:
            answer = await self._keeper_of(process_id).request("wait_output", id=process_id, stream=stream, after=after)
        except Refused:  # no such bundle: there is no more output
            return Reach(after, True)
        return Reach(answer["end"], answer["closed"])


class _Flow:
    def __init__(self) -> None:
        self.waiters: list[_StreamWaiter] = []
        self.asked_after = 0

    async def wait(self, after: int) -> Reach:
        waiter = _StreamWaiter(after, asyncio.get_running_loop().create_future())
        self.waiters.append(waiter)
        try:
            return await waiter.reached
        finally:
            if waiter in self.waiters:
                self.waiters.remove(waiter)

    def reached(self, reach: Reach) -> None:
        for waiter in list(self.waiters):
            if (reach.closed or reach.end > waiter.after) and not waiter.reached.done():
                waiter.reached.set_result(reach)
                self.waiters.remove(waiter)

    def failed(self, error: HoldfastError) -> None:
        for waiter in self.waiters:
            if not waiter.reached.done():
                waiter.reached.set_exception(error)
