"""Waiting until the output of processes matches a pattern, or they end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.daemon.core.context import DaemonContext, Message
from holdfast.daemon.streams import output
from holdfast.errors import BadValue
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.ops.kinds import IntegerKind
from holdfast.ops.processes import Wait
from holdfast.records import Struct

if TYPE_CHECKING:
    from holdfast.logs.matcher import LogMatch
    from holdfast.logs.pattern import Pattern

_OFFSET = IntegerKind({})

#: The match of each process that was searched to its end or a match; None where there was none.
Searched = dict[ProcessId, Message | None]


class MatchQuery(Struct, frozen=True):
    pattern: Pattern
    #: Behind which byte a match has to end, for each stream of each process; as far as it was given.
    after: dict[ProcessId, dict[str, int]]


async def read(context: DaemonContext, ask: Wait, ids: list[ProcessId]) -> MatchQuery:
    """The query. A process without a given byte is searched from now on."""
    text, ignore_case = ask.match, ask.ignore_case
    if not text:
        raise BadValue("wait for what to match?", next="holdfast wait ID --until match --match RE")
    from holdfast.logs.pattern import compile_pattern

    pattern = await context.read(lambda: compile_pattern(text, ignore_case=ignore_case))
    given = ask.after if isinstance(ask.after, dict) else dict.fromkeys(ids, ask.after)
    found = {process_id: _after(context, process_id, given.get(process_id)) for process_id in ids}
    for process_id in ids:
        process = context.registry.get(process_id)
        if process is not None and not found[process_id]:
            found[process_id] = await output.ends(context, process)
    return MatchQuery(pattern, found)


def _after(context: DaemonContext, process_id: ProcessId, value: object) -> dict[str, int]:
    process = context.registry.get(process_id)
    if process is None or value is None:
        return {}
    given = value if isinstance(value, dict) else dict.fromkeys(process.meta.streams, value)
    offsets = {stream: 0 if given.get(stream) is None else given[stream] for stream in process.meta.streams}
    return {stream: _OFFSET.check(offset, stream) for stream, offset in offsets.items()}


async def until_matched(
    context: DaemonContext, ids: list[ProcessId], any_of_them: bool, query: MatchQuery, searched: Searched
) -> None:
    """Until each has matched or ended; with `any_of_them`, until one matched or all ended. Fills `searched`."""
    works = {asyncio.ensure_future(_first(context, process_id, query)): process_id for process_id in ids}
    try:
        while works and not (any_of_them and matches(searched)):
            finished, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            for work in finished:
                searched[works.pop(work)] = work.result()
    finally:
        await _cancel(works)


def matches(searched: Searched) -> dict[ProcessId, Message]:
    return {process_id: match for process_id, match in searched.items() if match is not None}


def done(ids: list[ProcessId], searched: Searched, any_of_them: bool) -> list[ProcessId]:
    """Those that need not be waited for: they matched, or ended without a match.

    With `any_of_them`, ends count once all processes have ended.
    """
    matched = list(matches(searched))
    if any_of_them and (matched or len(searched) < len(ids)):
        return matched
    return matched + [process_id for process_id, match in searched.items() if match is None]


async def _first(context: DaemonContext, process_id: ProcessId, query: MatchQuery) -> Message | None:
    """The first match in any stream of a process."""
    process = context.registry.get(process_id)
    if process is None:
        return None
    works = [
        asyncio.ensure_future(_in_stream(context, process, stream, query.pattern, after))
        for stream, after in query.after[process_id].items()
    ]
    try:
        for work in asyncio.as_completed(works):
            if (match := await work) is not None:
                return match
    finally:
        await _cancel(works)
    await context.registry.wait_ended(process_id)  # which may follow the end of its output
    return None


async def _in_stream(
    context: DaemonContext, process: HeldProcess, stream: str, pattern: Pattern, after: int
) -> Message | None:
    from holdfast.logs.matcher import OnePattern, StreamMatcher
    from holdfast.logs.sweep import next_match

    process = await output.until_started(context, process.id) or process
    log = await context.read(context.place_of(process).log, process.id, stream)
    try:
        matcher = await context.read(lambda: StreamMatcher.resume(OnePattern(pattern), log, after, repeats=True))
        is_over = process.has_ended
        while True:
            match, is_end = await context.read(next_match, log, matcher)
            if match is None and is_end and is_over:
                last = await context.read(lambda: next(matcher.finish(), None))
                match = None if last is None else matcher.shown(last)
                return None if match is None else _message(match, stream)
            if match is not None:
                return _message(match, stream)
            if is_end:
                is_over = await output.wait_beyond(context, process.id, stream, matcher.at)
    finally:
        log.close()


async def _cancel(works: Iterable[asyncio.Future[Message | None]]) -> None:
    left = [work for work in works if not work.done()]
    for work in left:
        work.cancel()
    if left:
        await asyncio.wait(left)


def _message(found: LogMatch, stream: str) -> Message:
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
