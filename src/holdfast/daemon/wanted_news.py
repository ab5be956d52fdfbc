"""What the owner of a process wants to hear of it: ends, texts to watch for, progress; and where it is answered."""

from __future__ import annotations

from typing import Any

from holdfast.errors import BadValue
from holdfast.model.process import Meta
from holdfast.ops.start import MOST_PATTERNS, SHORTEST_INTERVAL, Start

WATCH_DROPPED = "notify and watch exclude each other: the watch was dropped, the end will be told"
SILENT = "notify never: neither matches nor progress will be told"
TOO_OFTEN = f"check_interval is {SHORTEST_INTERVAL:g} s at least"
NOT_TAKEN = "it goes on as it was started: notify, watch, check_interval and origin of this call are not taken over"


def read(ask: Start) -> dict[str, Any]:
    """The fields of Meta. Raises BadValue."""
    watch, regex = tuple(dict.fromkeys(ask.watch)), tuple(dict.fromkeys(ask.watch_regex))
    if len(watch) + len(regex) > MOST_PATTERNS:
        raise BadValue(f"{len(watch) + len(regex)} patterns to watch for are too many", next=f"at most {MOST_PATTERNS}")
    if drops_watch(ask):
        watch = regex = ()
    interval = ask.check_interval
    return {
        "notify": ask.notify or "any",
        "watch": watch,
        "watch_regex": regex,
        "check_interval": None if interval is None else max(interval, SHORTEST_INTERVAL),
    }


def drops_watch(ask: Start) -> bool:
    """Whether it asks for both, of which being told of the end wins."""
    return ask.notify not in (None, "never") and bool(ask.watch or ask.watch_regex)


def notes(ask: Start) -> list[str]:
    """What will not be as it was asked for: nobody is to wait for news that never comes."""
    found = [WATCH_DROPPED] if drops_watch(ask) else []
    wants_news = ask.watch or ask.watch_regex or ask.check_interval
    if ask.notify == "never" and wants_news:
        found.append(SILENT)
    if ask.check_interval is not None and ask.check_interval < SHORTEST_INTERVAL:
        found.append(TOO_OFTEN)
    return found


def not_taken(wanted: Meta, running: Meta) -> list[str]:
    """For one who is given a process that runs, and asked for other news of it than that was started with."""
    return [] if _news(wanted) == _news(running) else [NOT_TAKEN]


def _news(meta: Meta) -> tuple[object, ...]:
    return meta.notify, meta.watch, meta.watch_regex, meta.check_interval, meta.origin
