"""Notification options of a start: what they mean together, and what the answer says about them."""

from __future__ import annotations

from typing import Any

from holdfast.errors import BadValue
from holdfast.model.process import Meta
from holdfast.ops.start import MOST_PATTERNS, SHORTEST_INTERVAL, Start

WATCH_DROPPED = "notify=any and watch exclude each other: the watch was dropped, the end will be notified"
TOO_OFTEN = f"check_interval is {SHORTEST_INTERVAL:g} s at least"
NOT_TAKEN = "it goes on as it was started: notify, watch, check_interval and origin of this call are not taken over"


def read(ask: Start) -> dict[str, Any]:
    """The fields of Meta. Raises BadValue."""
    watch, regex = tuple(dict.fromkeys(ask.watch)), tuple(dict.fromkeys(ask.watch_regex))
    if len(watch) + len(regex) > MOST_PATTERNS:
        raise BadValue(f"{len(watch) + len(regex)} patterns to watch for are too many", next=f"at most {MOST_PATTERNS}")
    if drops_watch(ask):
        watch = regex = ()
    # A watch without a word about the end notifies matches only.
    matches_only = bool(watch or regex) and ask.notify is None
    interval = ask.check_interval
    return {
        "notify": ask.notify or ("never" if matches_only else "any"),
        "end_after_watch": matches_only,
        "watch": watch,
        "watch_regex": regex,
        "check_interval": None if interval is None else max(interval, SHORTEST_INTERVAL),
    }


def drops_watch(ask: Start) -> bool:
    """Whether it asks for a watch and for the notification of any end, which wins."""
    return ask.notify == "any" and bool(ask.watch or ask.watch_regex)


def notes(ask: Start) -> list[str]:
    """What will not be as it was asked for, for the answer."""
    found = [WATCH_DROPPED] if drops_watch(ask) else []
    if ask.check_interval is not None and ask.check_interval < SHORTEST_INTERVAL:
        found.append(TOO_OFTEN)
    return found


def not_taken(wanted: Meta, running: Meta) -> list[str]:
    """For a caller that is given a running process, and asked for other notifications than it was started with."""
    return [] if _notifications(wanted) == _notifications(running) else [NOT_TAKEN]


def _notifications(meta: Meta) -> tuple[object, ...]:
    return meta.notify, meta.end_after_watch, meta.watch, meta.watch_regex, meta.check_interval, meta.origin
