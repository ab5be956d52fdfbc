"""digest: what still runs for a session, for one that may have forgotten."""

from __future__ import annotations

import time

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.streams.tails import tail_of
from holdfast.model import notice_texts
from holdfast.model.process import HeldProcess
from holdfast.ops.sessions import Digest

#: A short text has no room for more of them.
_MOST_LINES = 20


async def handle(context: DaemonContext, call: Call, ask: Digest) -> Message:
    """The newest first. Reading it acknowledges nothing."""
    session = context.current_name(ask.session) or call.owner
    owned = [process for process in context.registry.running() if process.meta.session == session]
    owned.sort(key=lambda process: process.meta.requested_at, reverse=True)
    lines = [await _last_line(context, process) for process in owned[:_MOST_LINES]]
    shown = await context.show_fresh(owned)
    told = [{**one, "last_line": line} for one, line in zip(shown, _filled(lines, len(shown)), strict=True)]
    pending = len(context.inbox.all_of(session))
    return {"text": notice_texts.digest(told, time.time(), pending), "processes": told, "pending": pending}


async def _last_line(context: DaemonContext, process: HeldProcess) -> str:
    lines = [line for line in (await tail_of(context, process)).text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _filled(lines: list[str], size: int) -> list[str | None]:
    """With nothing known of those beyond."""
    return [*lines, *[None] * (size - len(lines))]
