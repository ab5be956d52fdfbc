"""Verbs that search logs, and that wait for output: as in `verbs`, no I/O."""

from __future__ import annotations

import time

from holdfast.client.verbs import QUICK, Ask, inspect, is_cut, ref
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict, Unpack

    from holdfast.client.found import Found, Searching
    from holdfast.client.page import LogPage
    from holdfast.client.verbs import Ref, Verb
    from holdfast.wire.frames import Message

    class SearchOptions(TypedDict, total=False):
        """What of a log is searched, and how."""

        offset: int | None
        stream: str
        ignore_case: bool
        fixed: bool
        invert: bool
        count: bool
        before: int
        after: int


_SEARCH_OPTIONS = ("offset", "stream", "ignore_case", "fixed", "invert", "count", "before", "after")


def search(process: Ref, pattern: str, limit: int | None, **options: Unpack[SearchOptions]) -> Verb[Found]:
    """The lines that match, up to `limit` of them (None: all)."""
    work = searching(process, pattern, limit, **options)
    while not work.is_over:
        answer, _ = yield Ask("search", work.question())
        work.take(answer, keep=True)
    return work.found


def search_page(question: Message) -> Verb[Message]:
    answer, _ = yield Ask("search", question)
    return answer


def searching(
    process: Ref, pattern: str, limit: int | None, *, follow: bool = False, **options: Unpack[SearchOptions]
) -> Searching:
    from holdfast.client.found import Searching

    unknown = options.keys() - _SEARCH_OPTIONS
    if unknown:
        known = ", ".join(_SEARCH_OPTIONS)
        raise BadValue(f"search has no option {', '.join(sorted(unknown))}", next=f"known: {known}")
    if limit is not None and limit < 1:
        raise BadValue(f"a search for {limit} matches finds none", next="limit is 1 or more")
    asked: Message = {**options, "process": ref(process), "pattern": pattern, "follow": follow}
    asked["from"] = asked.pop("offset", None)
    return Searching(asked, limit)


def next_page(where: Message, offset: int, size: int, raw: bool, wait: float) -> Verb[LogPage]:
    """What follows a cursor; nothing when nothing has come in so many seconds, or only a part of a character."""
    from holdfast.client.page import make_page

    until = time.monotonic() + wait
    asked = {**where, "from": offset, "bytes": size, "wait": wait}
    while True:
        answer, output = yield Ask("logs", asked)
        left = asked["wait"] = max(0.0, until - time.monotonic())
        lost_head = not raw and offset < answer["start"]
        page = make_page(
            answer, output, raw=raw, at_line_start=False, at_line_end=is_cut(output, size), lost_head=lost_head
        )
        clamped = answer.get("clamped_to") is not None
        if page.data or answer["closed"] or left <= 0 or not (output or clamped):
            return page
        if output:
            asked["beyond"] = output[-1].end


def ends(processes: Sequence[Ref]) -> Verb[dict[str, dict[str, int]]]:
    """How far the output of each reaches now, so that a repeated question waits for the same."""
    reached: dict[str, dict[str, int]] = {}
    for process in processes:
        found = yield from inspect(process)
        streams = ("out", "err") if found.split else ("out",)
        for stream in streams:
            answer, _ = yield Ask("logs", {"process": found.id, "stream": stream, "from": 0, "bytes": 0}, limit=QUICK)
            reached.setdefault(found.id, {})[stream] = answer["total"]
    return reached
