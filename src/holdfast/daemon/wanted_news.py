"""What a start says about notifications: ends, watch patterns, progress, and the origin that is given back."""

from __future__ import annotations

import json
from typing import Any

from holdfast.daemon import values
from holdfast.daemon.values import Ask
from holdfast.errors import BadValue
from holdfast.model.process import Meta, Notify

_NOTIFY: tuple[Notify, ...] = ("any", "failure", "success", "never")
_MOST_PATTERNS = 100
_LONGEST_PATTERN = 4096
_MOST_ORIGIN = 4096
_SHORTEST_INTERVAL = 1.0

WATCH_DROPPED = "notify=any and watch exclude each other: the watch was dropped, the end will be notified"
TOO_OFTEN = f"check_interval is {_SHORTEST_INTERVAL:g} s at least"
NOT_TAKEN = "it goes on as it was started: notify, watch, check_interval and origin of this call are not taken over"


def read(ask: Ask) -> dict[str, Any]:
    """The fields of Meta. Raises BadValue."""
    watch, regex = _patterns(ask, "watch"), _patterns(ask, "watch_regex")
    if len(watch) + len(regex) > _MOST_PATTERNS:
        raise BadValue(
            f"{len(watch) + len(regex)} patterns to watch for are too many", next=f"at most {_MOST_PATTERNS}"
        )
    if drops_watch(ask):
        watch = regex = ()
    # A watch without a word about the end notifies matches only.
    matches_only = bool(watch or regex) and ask.get("notify") is None
    interval = values.seconds(ask, "check_interval", zero=False)
    return {
        "notify": values.choice(ask, "notify", _NOTIFY, "never" if matches_only else "any"),
        "end_after_watch": matches_only,
        "watch": watch,
        "watch_regex": regex,
        "check_interval": None if interval is None else max(interval, _SHORTEST_INTERVAL),
        "origin": _origin(ask),
    }


def drops_watch(ask: Ask) -> bool:
    """Whether it asks for a watch and for the notification of any end, which wins."""
    return ask.get("notify") == "any" and bool(ask.get("watch") or ask.get("watch_regex"))


def notes(ask: Ask) -> list[str]:
    """What will not be as it was asked for, for the answer."""
    found = [WATCH_DROPPED] if drops_watch(ask) else []
    interval = values.seconds(ask, "check_interval", zero=False)
    if interval is not None and interval < _SHORTEST_INTERVAL:
        found.append(TOO_OFTEN)
    return found


def not_taken(wanted: Meta, running: Meta) -> list[str]:
    """For a caller that is given a running process, and asked for other notifications than it was started with."""
    return [] if _notifications(wanted) == _notifications(running) else [NOT_TAKEN]


def _notifications(meta: Meta) -> tuple[object, ...]:
    return meta.notify, meta.end_after_watch, meta.watch, meta.watch_regex, meta.check_interval, meta.origin


def _patterns(ask: Ask, key: str) -> tuple[str, ...]:
    found = values.texts(ask, key, 10 * _MOST_PATTERNS) or []
    for pattern in found:
        if not pattern:
            raise BadValue(f"{key} has an empty pattern, which would match everything")
        if len(pattern.encode(errors="surrogateescape")) > _LONGEST_PATTERN:
            raise BadValue(f"a pattern of {key} is longer than {_LONGEST_PATTERN} bytes")
    return tuple(dict.fromkeys(found))


def _origin(ask: Ask) -> dict[str, Any] | None:
    origin = ask.get("origin")
    if origin is None:
        return None
    if not isinstance(origin, dict):
        raise BadValue("origin must be an object")
    try:
        size = len(json.dumps(origin, allow_nan=False))
    except (ValueError, RecursionError):
        raise BadValue("origin must be plain JSON") from None
    if size > _MOST_ORIGIN:
        raise BadValue(f"origin has {size} bytes of JSON, {_MOST_ORIGIN} at most")
    return dict(origin)
