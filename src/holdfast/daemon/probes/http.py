"""Ready when a URL answers with 2xx or 3xx. In its own place, only an answer of the process's own tree counts."""

from __future__ import annotations

import asyncio

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.probes.port import PortProbe, Report
from holdfast.model.addresses import HttpTarget, parse_url
from holdfast.model.probes import readiness
from holdfast.model.process import HeldProcess
from holdfast.places.base import ExecutionPlace

#: For one answer: some servers build everything when they are asked first.
_ANSWER_TIMEOUT = 10.0
#: After this time without an answer the reason is shown.
_REPORT_AFTER = 1.0


async def until_answered(context: DaemonContext, process: HeldProcess, url: str, report: Report) -> None:
    target = parse_url(url, "ready_http")
    here = _Here(context.place_of(process), target, PortProbe(context, process, target.port))
    attempt = 0
    while True:
        slow = asyncio.get_running_loop().call_later(_REPORT_AFTER, report, f"no answer yet from port {target.port}")
        try:
            trouble = await _attempt(here)
        finally:
            slow.cancel()
        if trouble is None:
            return
        report(trouble)
        await asyncio.sleep(readiness.pause(attempt))
        attempt += 1


async def _attempt(here: _Here) -> str | None:
    """None when it is ready, else why it is not."""
    try:
        async with asyncio.timeout(_ANSWER_TIMEOUT):
            return await here.trouble()
    except TimeoutError:
        return f"no answer within {_ANSWER_TIMEOUT:g} s"


class _Here:
    """Whether the URL leads to the machine of the process, and whether the process that would answer is its own."""

    def __init__(self, place: ExecutionPlace, target: HttpTarget, probe: PortProbe) -> None:
        self._place = place
        self._target = target
        self._probe = probe
        self._is_here: bool | None = None

    async def trouble(self) -> str | None:
        """None when it is ready, else why it is not."""
        if self._is_here is None:
            self._is_here = await self._place.has_address(self._target.host)
        is_useless = await self._probe.trouble(must_be_alone=True) if self._is_here else None
        return is_useless or await self._place.http_trouble(self._target)
