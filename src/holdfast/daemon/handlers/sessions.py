"""sessions, end_session, rename_session, digest: operations on sessions."""

from __future__ import annotations

import asyncio
import time
from itertools import islice

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.ending import end
from holdfast.daemon.streams.tails import tail_of
from holdfast.errors import BadValue
from holdfast.model.foreground_labels import is_foreground
from holdfast.model.lifecycle import Ended
from holdfast.model.notices import notice_texts
from holdfast.model.process import HeldProcess
from holdfast.model.process_rules import end_with_session, parent_of
from holdfast.ops.sessions import Digest, EndSession, RenameSession, Sessions

#: Processes of a digest whose last line of output is shown.
_MOST_LINES = 20
#: Ended processes in a digest: those that ended within this many seconds, and how many of them at most.
_LATELY, _MOST_ENDED = 1800.0, 10


async def sessions(context: DaemonContext, call: Call, ask: Sessions) -> Message:
    """Sessions that own processes or have pending notices; the one that started a process last comes last."""
    await context.inbox.all_arrived()
    pending = context.inbox.counts()
    rows: dict[str, Message] = {session: _row(session) for session in pending if call.sees(session)}
    seen = [process for process in context.registry.shown() if call.sees(process.meta.session)]
    for process in sorted(seen, key=lambda process: process.meta.requested_at):
        row = rows.pop(process.meta.session, None) or _row(process.meta.session)
        row["ended" if process.has_ended else "running"] += 1
        row["first_at"] = row["first_at"] or process.meta.requested_at
        row["last_at"] = process.meta.requested_at
        rows[process.meta.session] = row
    return {"sessions": [{**row, "pending": pending.get(session, 0)} for session, row in rows.items()]}


def _row(session: str) -> Message:
    return {"session": session, "running": 0, "ended": 0, "first_at": None, "last_at": None}


async def end_session(context: DaemonContext, call: Call, ask: EndSession) -> Message:
    """Replies when its processes have ended or belong to another session, on disk. Repeated, it completes the rest."""
    session = context.current_name(ask.session)
    if session is None:
        raise BadValue("end which session?")
    await context.approvals.end_session(session)
    context.passwords.forget(session)
    to = _new_owner(context, ask, session)
    ending, _ = end_with_session(context.registry.active(), session)
    results = await asyncio.gather(
        *(end(context, process, call.ended_by(session), "session_end", context.settings.grace) for process in ending)
    )
    closed = await context.sessions.close(session, to, [process.id for process in ending])
    return {
        "results": results,
        "passed": [{"id": process_id, "to": to} for process_id in closed.passed],
        "left": closed.left,
        "notifications": closed.notices,
    }


def _new_owner(context: DaemonContext, ask: EndSession, session: str) -> str | None:
    """The session that gets the running processes: the named one, else the parent; None where they are kept."""
    named, keep = context.current_name(ask.to), ask.keep
    if named is not None and keep:
        raise BadValue("either they pass to another session or they are kept, not both", next="leave `keep` out")
    if named == session:
        raise BadValue("a session that ends cannot keep its processes by itself", next="name another, or say keep")
    if named is not None or keep:
        return named
    parent = parent_of(context.registry.all.values(), session)
    owner = context.sessions.resolve(parent) if parent is not None else None
    return owner if owner != session else None


async def rename_session(context: DaemonContext, call: Call, ask: RenameSession) -> Message:
    """Replies when all that the old name owns belongs to the new one, on disk. The old name stays an alias."""
    old, new = ask.from_, ask.to
    if old is None or new is None:
        raise BadValue("rename which session, and how?", next="holdfast session rename OLD NEW")
    if old == new:
        raise BadValue("that is its name already")
    processes, notices = await context.sessions.rename(old, new)
    return {"processes": [process.id for process in processes], "notifications": notices}


async def digest(context: DaemonContext, call: Call, ask: Digest) -> Message:
    """What runs for a session and what ended lately, newest first, as objects and as a text. Acknowledges nothing."""
    session, now = context.current_name(ask.session) or call.owner, time.time()
    owned = [process for process in context.registry.shown() if process.meta.session == session]
    owned.sort(key=lambda process: process.meta.requested_at, reverse=True)
    running = await _with_last_lines(context, [process for process in owned if process.is_active])
    ended = await _with_last_lines(context, _ended_lately(owned, now))
    await context.inbox.all_arrived(session)
    pending = len(context.inbox.all_of(session))
    text = notice_texts.digest(running, now, pending, ended)
    return {"text": text, "processes": running, "ended": ended, "pending": pending}


def _ended_lately(processes: list[HeldProcess], now: float) -> list[HeldProcess]:
    """The last to end comes first. Without those that ended within a foreground call, which has shown the end."""
    ends = [
        (process.state.known_at, process)
        for process in processes
        if isinstance(process.state, Ended) and now - process.state.known_at < _LATELY
    ]
    ends.sort(key=lambda end: end[0], reverse=True)
    found = (
        one for at, one in ends if not is_foreground(one.meta.labels, at - (one.started_at or one.meta.requested_at))
    )
    return list(islice(found, _MOST_ENDED))


async def _with_last_lines(context: DaemonContext, processes: list[HeldProcess]) -> list[Message]:
    lines: list[str | None] = [await _last_line(context, process) for process in processes[:_MOST_LINES]]
    lines += [None] * (len(processes) - len(lines))
    return [{**one, "last_line": line} for one, line in zip(await context.show_fresh(processes), lines, strict=True)]


async def _last_line(context: DaemonContext, process: HeldProcess) -> str:
    lines = [line for line in (await tail_of(context, process)).text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
