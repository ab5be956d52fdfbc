"""Notices as clients see them: notification objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.streams.tails import tail_of
from holdfast.model.events import Notice, completion_key, ready_key
from holdfast.model.notices.summaries import event_of, summary_of
from holdfast.model.process import ProcessId
from holdfast.records import replace
from holdfast.store import rows

#: Logs that are read at the same time: more would delay other readers.
_AT_ONCE = 50


async def handed_out(
    context: DaemonContext,
    notices: list[Notice],
    session: str,
    taker: object | None,
    how: str | None,
    is_raw: bool = False,
) -> list[Message]:
    """Their objects, without those that do not belong to the session any more when the output was read.

    `how` they are delivered; None where the caller only looks.
    """
    shown = await notification_objects(context, notices, is_raw)
    left = context.inbox.still(notices, context.sessions.resolve(session))
    ids = {notice.id for notice in left}
    context.inbox.give_back(taker, [notice.id for notice in notices if notice.id not in ids])
    if how is not None:
        context.inbox.mark_delivered(left, how)
    return [one for one in shown if one["id"] in ids]


async def notification_objects(context: DaemonContext, notices: list[Notice], is_raw: bool = False) -> list[Message]:
    """Their objects. Secrets in quoted output are masked; with `is_raw`, only in output that the notice holds."""
    completed: list[Notice] = []
    for some in (notices[at : at + _AT_ONCE] for at in range(0, len(notices), _AT_ONCE)):
        completed += await asyncio.gather(*(complete(context, notice, is_raw) for notice in some))
    if not is_raw:
        for session in {notice.session for notice in completed}:
            own = [notice for notice in completed if notice.session == session]
            masked = await context.secrets.mask([notice.data for notice in own], context.sessions.resolve(session))
            known = {notice.id: replace(notice, data=data) for notice, data in zip(own, masked, strict=True)}
            completed = [known.get(notice.id, notice) for notice in completed]
    return [_object(notice) for notice in completed]


async def complete(context: DaemonContext, notice: Notice, is_raw: bool = False) -> Notice:
    """A completion with the end of its output, which is read here: the exit did not wait for it."""
    if notice.kind != "completion" or "output" in notice.data or notice.process is None:
        return notice
    process = context.registry.get(notice.process)
    # On a full disk, output that came before the exit is written after it.
    written = sum(stream.end for stream in process.streams.values()) if process is not None else 0
    if process is not None and process.run == notice.data["run"] and written > notice.data["output_bytes"]:
        notice = replace(notice, data={**notice.data, "output_bytes": written})
    if process is None or not notice.data["output_bytes"]:
        return replace(notice, data={**notice.data, "output": "", "output_cut": process is None})
    upto = {"out": process.exit_offset} if process.exit_offset is not None and process.run == notice.data["run"] else {}
    tail = await tail_of(context, process, upto, is_raw=is_raw)
    return replace(notice, data={**notice.data, "output": tail.text, "output_cut": tail.is_cut})


async def keep_output(context: DaemonContext, process_id: ProcessId) -> None:
    """Before the log is removed: pending completions keep the end of its output."""
    await context.inbox.all_arrived(context.registry.owner(process_id))
    before = context.inbox.pending_of(process_id)
    after = [await complete(context, notice) for notice in before]
    changed = [notice for notice in after if notice not in before]
    if changed:
        await context.store.change(lambda connection: rows.reword(connection, changed))
        context.inbox.reworded(changed)


def _object(notice: Notice) -> Message:
    from holdfast.model.notices import notice_texts

    fields: Message = notice.to_json()
    for_users = {"summary": summary_of(fields).line, "event": event_of(fields)}
    return {**fields, "source": "system", "text": notice_texts.text(fields), **for_users}


async def consume(
    context: DaemonContext, call: Call, ids: Iterable[ProcessId], ready: Iterable[ProcessId] = ()
) -> None:
    """Claim the notices of the caller's processes that the reply replaces: of ends, and that `ready` ones are ready."""
    registry = context.registry
    ended = [one for process_id in ids if (one := registry.get(process_id)) is not None and one.has_ended]
    keys = [completion_key(process.id, process.run) for process in ended]
    keys += [ready_key(one.id, one.run) for process_id in ready if (one := registry.get(process_id)) is not None]
    # Noted before they are held, so that they are released if this fails.
    call.consumed += context.inbox.ids_of(keys, call.owner)
    await context.inbox.hold(call.consumed, call)
