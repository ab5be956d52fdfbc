"""One run of one process that takes input, watched for prompts for as long as it lives.

A process that rests costs nothing. While a process writes, only the length of its log is read, every 0.4 s. The process
itself is examined when the log has not grown for a moment and when something was typed, else less and less often.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import NamedTuple

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.tasks import first_of
from holdfast.daemon.listener import file_limit
from holdfast.daemon.probes import marks
from holdfast.daemon.probes.marks import is_same_run, settle
from holdfast.errors import HoldfastError
from holdfast.model.probes import prompts
from holdfast.model.probes.prompts import InputNeed
from holdfast.model.process import HeldProcess
from holdfast.model.text import TextView
from holdfast.places.base import Refused
from holdfast.records import replace

#: Output that has not grown for this long is complete for now.
_QUIET = 0.4
_TAIL = 8 << 10
_TROUBLE_PAUSE = 1.0


def may_ask(process: HeldProcess) -> bool:
    """Whether it takes input."""
    return process.is_up and (process.meta.pty or process.stdin_open)


async def watch_prompts(context: DaemonContext, process: HeldProcess) -> None:
    """Returns when the run is over, or takes no more input."""
    with context.inputs.listening(process.id) as typed, context.registry.watching([process.id]) as changed:
        await _PromptWatch(context, process, typed, changed).run()


class _Look(NamedTuple):
    need: InputNeed | None
    rests: bool
    """Whether nothing can change before there is output or input."""


class _PromptWatch:
    def __init__(
        self, context: DaemonContext, process: HeldProcess, typed: asyncio.Event, changed: asyncio.Event
    ) -> None:
        self._context = context
        self._process = process
        self._place = context.place_of(process)
        self._typed = typed
        self._changed = changed

    async def run(self) -> None:
        looks = 0
        while self._goes_on():
            try:
                end = await self._quiet()
                look = await self._look(end)
                await self._judge(look.need)
                pause = None if look.rests and look.need is None else prompts.pause(looks)
                looks = 0 if await self._change(end, pause) else looks + 1
            except (Refused, HoldfastError, OSError):  # the keeper is away, or the limit of open files is reached
                await asyncio.sleep(_TROUBLE_PAUSE)
        await self._judge(None)  # where its input was closed

    def _goes_on(self) -> bool:
        now = self._context.registry.get(self._process.id)
        return now is not None and is_same_run(now, self._process) and may_ask(now)

    async def _quiet(self) -> int:
        """How far the output reaches once it has stopped growing."""
        end = -1
        while self._goes_on() and (now := await self._context.read(self._end)) != end:
            end = now
            await asyncio.sleep(_QUIET)
            if self._mark() is not None:
                break  # whether it still asks is checked at once, even if it writes a lot
        return max(end, 0)

    def _mark(self) -> InputNeed | None:
        now = self._context.registry.get(self._process.id)
        return prompts.mark_of(now) if now is not None else None

    def _end(self) -> int:
        with self._place.log(self._process.id, "out") as log:
            return log.extent().end

    async def _look(self, end: int) -> _Look:
        self._typed.clear()
        is_short = file_limit.shortage() is not None  # then too little is known of it
        found = await self._place.input_state(self._process)
        if found is None:
            return _Look(None, rests=False)
        text, begin = await self._context.read(self._tail, end)
        is_secret = found.terminal is not None and not found.terminal.echo
        if not prompts.asks(found.terminal, found.reader, text.rpartition("\n")[2]):
            return _Look(None, prompts.rests(*found) and not is_short)
        mask = partial(self._context.secrets.masked_text, session=self._process.meta.session)
        shown = await asyncio.to_thread(prompts.prompt_of, text, mask)
        # Where typing is echoed, the line of the prompt grows: the prompt is identified by where that line begins.
        need = InputNeed(self._process.started_at or 0.0, time.time(), end if is_secret else begin, shown, is_secret)
        return _Look(need, rests=True)

    def _tail(self, end: int) -> tuple[str, int]:
        """The last lines as text, and where the last of them begins."""
        with self._place.log(self._process.id, "out") as log:
            start = max(log.extent().first, end - _TAIL)
            data = log.read(start, end - start).data if end > start else b""
        view = TextView()
        return view.feed(data) + view.close(), start + data.rfind(b"\n") + 1

    async def _judge(self, need: InputNeed | None) -> None:
        """One mark for each prompt, removed when it is answered."""
        now, mark = self._context.registry.get(self._process.id), self._mark()
        if now is None or (need and need.at) == (mark and mark.at) or self._typed.is_set():
            return
        if await settle(self._context, now, lambda process: replace(process, need=need)) and need is not None:
            marks.log("input-needed", now, secret=need.secret)

    async def _change(self, end: int, pause: float | None) -> bool:
        """Until there is output or input, or the run is over; False when nothing happened in time."""
        output = self._context.outputs.beyond(self._process.id, "out", end)
        done = await first_of(output, self._typed.wait(), self._over(), timeout=pause)
        if output in done and output.result().closed:
            await self._over()
        return bool(done)

    async def _over(self) -> None:
        while self._goes_on():
            await self._changed.wait()
            self._changed.clear()
