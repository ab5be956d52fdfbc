"""Waiting for output: callers that wait for the same stream share one request to the keeper."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from holdfast.model.process import ProcessId
from holdfast.places.keeper_link import KeeperLink, Refused
from holdfast_keeper.protocol import Message


class Reach(NamedTuple):
    """How far a stream reaches, and whether it will ever reach further."""

    end: int
    closed: bool


class _StreamWaiter(NamedTuple):
    after: int
    reached: asyncio.Future[Reach]


class Outputs:
    def __init__(self, keeper_of: Callable[[ProcessId], KeeperLink]) -> None:
        self._keeper_of = keeper_of
        self._flows: dict[tuple[ProcessId, str], _Flow] = {}

    def beyond(self, process_id: ProcessId, stream: str, after: int) -> asyncio.Future[Reach]:
        """How far the stream reaches once it reaches beyond `after` or is closed. Raises Unreachable.

        Cancel it to wait no longer.
        """
        key = (process_id, stream)
        flow = self._flows.get(key)
        if flow is None:
            ask = partial(self._keeper_of(process_id).begin, "wait_output", id=process_id, stream=stream)
            flow = self._flows[key] = _Flow(ask, partial(self._flows.pop, key, None))
        return flow.wait(after)


class _Flow:
    """Those who wait for one stream, and the requests to the keeper for them. The last request stays open, at no cost,
    until there is output.
    """

    def __init__(self, ask: Callable[..., asyncio.Future[Message]], forget: Callable[[], object]) -> None:
        self._ask_keeper = ask
        self._forget = forget
        self._waiters: list[_StreamWaiter] = []
        #: The offsets of the requests that are open.
        self._asked: list[int] = []

    def wait(self, after: int) -> asyncio.Future[Reach]:
        waiter = _StreamWaiter(after, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        if not self._asked or after < min(self._asked):
            self._ask(after)
        return waiter.reached

    def _ask(self, after: int) -> None:
        self._asked.append(after)
        self._ask_keeper(after=after).add_done_callback(partial(self._answered, after))

    def _answered(self, after: int, answer: asyncio.Future[Message]) -> None:
        self._asked.remove(after)
        failed = None if answer.cancelled() else answer.exception()
        if isinstance(failed, Refused):  # no such bundle: there is no more output
            reach = Reach(after, True)
        elif failed is None and not answer.cancelled():
            reach = Reach(answer.result()["end"], answer.result()["closed"])
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.reached.done():
                continue  # the caller waits no longer
            if answer.cancelled():
                waiter.reached.cancel()
            elif failed is not None and not isinstance(failed, Refused):
                waiter.reached.set_exception(failed)
            elif reach.closed or reach.end > waiter.after:
                waiter.reached.set_result(reach)
            else:
                self._waiters.append(waiter)
        if self._waiters and not self._asked:
            self._ask(min(waiter.after for waiter in self._waiters))
        elif not self._asked:
            self._forget()
