"""Waiting until processes write something that matches, or end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.daemon import output
from holdfast.daemon.room import Message, Room
from holdfast.errors import BadValue
from holdfast.logs import sweep
from holdfast.logs.pattern import Pattern, compile_pattern
from holdfast.logs.watching import Found, Watching
from holdfast.model.ids import ProcessId
from holdfast.model.process import Process
from holdfast.ops.kinds import IntegerKind
from holdfast.ops.processes import Wait

#: The match of each process that was looked through, None where there was none.
_OFFSET = IntegerKind({})

Looked = dict[ProcessId, Message | None]


class Wanted(NamedTuple):
    pattern: Pattern
    #: Behind which byte a match has to end: of each stream of each process, as far as that was said.
    after: dict[ProcessId, dict[str, int]]


async def read(room: Room, ask: Wait, ids: list[ProcessId]) -> Wanted:
    """What is asked for. What was not said to begin anywhere begins now."""
    text, ignore_case = ask.match, ask.ignore_case
    if not text:
        raise BadValue("wait for what to match?", next="holdfast wait ID --until match --match RE")
    pattern = await room.read(lambda: compile_pattern(text, ignore_case=ignore_case))
    said = ask.after if isinstance(ask.after, dict) else dict.fromkeys(ids, ask.after)
    found = {process_id: _after(room, process_id, said.get(process_id)) for process_id in ids}
    for process_id in ids:
        process = room.registry.get(process_id)
        if process is not None and not found[process_id]:
            found[process_id] = await output.ends(room, process)
    return Wanted(pattern, found)


def _after(room: Room, process_id: ProcessId, value: object) -> dict[str, int]:
    process = room.registry.get(process_id)
    if process is None or value is None:
        return {}
    said = value if isinstance(value, dict) else dict.fromkeys(process.meta.streams, value)
    given = {stream: said[stream] for stream in process.meta.streams if said.get(stream) is not None}
    return {stream: _OFFSET.check(given.get(stream, 0), stream) for stream in process.meta.streams}


async def until_matched(room: Room, ids: list[ProcessId], any_of_them: bool, wanted: Wanted, looked: Looked) -> None:
    """Until each has matched or ended; or, for any of them, until one matched or all ended. Fills `looked`."""
    works = {asyncio.ensure_future(_first(room, process_id, wanted)): process_id for process_id in ids}
    try:
        while works and not (any_of_them and matches(looked)):
            finished, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            for work in finished:
                looked[works.pop(work)] = work.result()
    finally:
        await _give_up(works)


def matches(looked: Looked) -> dict[ProcessId, Message]:
    return {process_id: match for process_id, match in looked.items() if match is not None}


def done(ids: list[ProcessId], looked: Looked, any_of_them: bool) -> list[ProcessId]:
    """Those that need not be waited for: they matched, or ended and were looked through in vain.

    For any of them, ends count when there is no other.
    """
    matched = list(matches(looked))
    if any_of_them and (matched or len(looked) < len(ids)):
        return matched
    return matched + [process_id for process_id, match in looked.items() if match is None]


async def _first(room: Room, process_id: ProcessId, wanted: Wanted) -> Message | None:
    """The first match in any stream of a process."""
    process = room.registry.get(process_id)
    if process is None:
        return None
    works = [
        asyncio.ensure_future(_in_stream(room, process, stream, wanted.pattern, after))
        for stream, after in wanted.after[process_id].items()
    ]
    try:
        for work in asyncio.as_completed(works):
            if (match := await work) is not None:
                return match
    finally:
        await _give_up(works)
    await room.registry.wait_ended(process_id)  # which may follow the end of its output
    return None


async def _in_stream(room: Room, process: Process, stream: str, pattern: Pattern, after: int) -> Message | None:
    log = await room.read(room.place.log, process.id, stream)
    try:
        at = await room.read(sweep.line_start, log, after)
        watching = Watching(pattern, after)
        is_over = process.has_ended
        while True:
            found, at, is_end = await room.read(sweep.look, log, watching, at)
            if found is None and is_end and is_over:
                found = await room.read(watching.finish)
                return None if found is None else _told(found, stream)
            if found is not None:
                return _told(found, stream)
            if is_end:
                is_over = await output.news(room, process.id, stream, at)
    finally:
        log.close()


async def _give_up(works: Iterable[asyncio.Future[Message | None]]) -> None:
    left = [work for work in works if not work.done()]
    for work in left:
        work.cancel()
    if left:
        await asyncio.wait(left)


def _told(found: Found, stream: str) -> Message:
    return {
        "stream": stream,
        "offset": found.start,
        "match_offset": found.match,
        "text": found.text,
        "column": found.column,
        "length": found.length,
        "cut": found.is_cut,
        "line": None,
    }
