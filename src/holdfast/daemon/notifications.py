"""Notices as they are told to clients: the contract's notification objects."""

from __future__ import annotations

from dataclasses import replace

from holdfast.daemon.room import Message, Room
from holdfast.daemon.tails import tail_of
from holdfast.model import telling
from holdfast.model.ids import ProcessId
from holdfast.model.notices import Notice
from holdfast.store import inbox as rows


async def told(room: Room, notices: list[Notice], is_raw: bool = False) -> list[Message]:
    """As they are told. Secrets are masked in all that they quote; raw, in what was kept of output alone."""
    completed = [await complete(room, notice, is_raw) for notice in notices]
    if not is_raw:
        masked = await room.secrecy.mask([notice.data for notice in completed])
        completed = [replace(notice, data=data) for notice, data in zip(completed, masked, strict=True)]
    return [_object(notice) for notice in completed]


async def complete(room: Room, notice: Notice, is_raw: bool = False) -> Notice:
    """A completion with the end of its output, which is read when it is wanted: the exit did not wait for it."""
    if notice.kind != "completion" or "output" in notice.data or notice.process is None:
        return notice
    process = room.registry.get(notice.process)
    if process is None:
        return replace(notice, data={**notice.data, "output": "", "output_cut": True})
    upto = {"out": process.exit_offset} if process.exit_offset is not None and process.run == notice.data["run"] else {}
    tail = await tail_of(room, process, upto, is_raw=is_raw)
    return replace(notice, data={**notice.data, "output": tail.text, "output_cut": tail.is_cut})


async def keep_output(room: Room, process_id: ProcessId) -> None:
    """Before the log goes: what is still to be told of it is kept without it."""
    before = room.inbox.pending_of(process_id)
    after = [await complete(room, notice) for notice in before]
    changed = [notice for notice in after if notice not in before]
    if changed:
        await room.store.change(lambda connection: rows.replace(connection, changed))
        room.inbox.moved(changed)


def _object(notice: Notice) -> Message:
    told: Message = {
        "id": notice.id,
        "key": notice.key,
        "kind": notice.kind,
        "process": notice.process,
        "session": notice.session,
        "origin": notice.origin,
        "at": notice.at,
        "data": notice.data,
    }
    return {**told, "source": "system", "text": telling.text(told)}
