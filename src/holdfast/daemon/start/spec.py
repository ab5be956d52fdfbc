"""A start as it was requested: what the fields mean together, beyond what each may be by itself."""

from __future__ import annotations

import shlex
import time
from typing import Any, NamedTuple

from holdfast.errors import BadValue
from holdfast.model.process import Meta, ProcessId
from holdfast.model.readiness import KINDS
from holdfast.ops.start import MOST_PATTERNS, SHORTEST_INTERVAL, Start
from holdfast.settings import Settings

_SMALLEST_LOG = 64 << 10
_COLS, _ROWS = 120, 30
_LONGEST_DELAY = 86400.0

#: Fields of Meta that are the request's, under the same name.
_SAME_NAME = tuple(Start.FIELDS.keys() & set(Meta.__slots__) - {"id", "command", "argv", "session", "log_cap"})

_LAUNCH = tuple(name for name, one in Start.FIELDS.items() if one.launch)


class StartSpec(NamedTuple):
    """A start that can be attempted."""

    meta: Meta
    shell: str | None
    """The shell that was requested; None for the usual one. Without meaning where `text` is None."""
    text: str | None
    """The command text; None when it runs without a shell."""
    env: dict[str, str]
    grant: dict[str, str]
    umask: int
    launch: dict[str, Any]
    """What the keeper applies when it launches the command: fields that are declared as `launch`."""
    removed: tuple[str, ...] = ()
    """Names of variables that were left out of its environment as secrets."""


def read(ask: Start, settings: Settings, caller: str | None) -> StartSpec:
    """Raises BadValue for fields that exclude each other."""
    _check(ask)
    text, argv = ask.command, ask.argv or []
    given = {name: value for name in _SAME_NAME if (value := ask.__dict__.get(name)) is not None}
    meta = Meta(
        id=ProcessId(ask.id),
        command=text if text is not None else shlex.join(argv),
        argv=tuple(argv),
        session=ask.session or caller or "default",
        requested_at=time.time(),
        log_cap=ask.log_cap or max(_SMALLEST_LOG, settings.log_cap),
        given=tuple(sorted(ask.grant)),
        gated=ask.gate,
        **{**given, **_adjusted(ask)},
    )
    return StartSpec(
        meta,
        shell=ask.shell or None,
        text=text,
        env=ask.env,
        grant=ask.grant,
        umask=ask.umask,
        launch={name: value for name in _LAUNCH if (value := getattr(ask, name)) is not None},
    )


def _adjusted(ask: Start) -> dict[str, Any]:
    """Fields whose value is not simply the request's."""
    found: dict[str, Any] = {
        "cols": (ask.cols or _COLS) if ask.pty else None,
        "rows": (ask.rows or _ROWS) if ask.pty else None,
        **_notification_fields(ask),
    }
    if ask.success_codes:
        found["success_codes"] = tuple(sorted(set(ask.success_codes)))
    if ask.restart_delay > _LONGEST_DELAY:
        found["restart_delay"] = _LONGEST_DELAY
    return found


def _check(ask: Start) -> None:
    if ask.command is not None and ask.argv is not None:
        raise BadValue("either command or argv, not both")
    if ask.command is None and ask.argv is None:
        raise BadValue("the command is missing")
    if ask.split and ask.pty:
        raise BadValue("a terminal has one stream of output: split and pty exclude each other")
    signs = [f"ready_{kind}" for kind in KINDS if getattr(ask, f"ready_{kind}") is not None]
    if len(signs) > 1:
        raise BadValue(f"either {' or '.join(signs)}: a process is ready by one sign")
    if ask.ready_timeout is not None and not signs:
        raise BadValue("ready_timeout without a sign to be ready by", next="add ready_log, ready_port or another")
    if ask.ready_log is not None:
        from holdfast.logs.pattern import compile_pattern

        compile_pattern(ask.ready_log, key="ready_log")
    if ask.ready_http is not None:
        from holdfast.daemon.probes.http import parse_url

        parse_url(ask.ready_http, "ready_http")


WATCH_DROPPED = "notify=any and watch exclude each other: the watch was dropped, the end will be notified"
TOO_OFTEN = f"check_interval is {SHORTEST_INTERVAL:g} s at least"
NOT_TAKEN = "it goes on as it was started: notify, watch, check_interval and origin of this call are not taken over"


def _notification_fields(ask: Start) -> dict[str, Any]:
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
    """Whether it requests a watch and a notification of any end, which takes precedence."""
    return ask.notify == "any" and bool(ask.watch or ask.watch_regex)


def notes(ask: Start) -> list[str]:
    """Notes for the reply: what differs from the request."""
    found = [WATCH_DROPPED] if drops_watch(ask) else []
    if ask.check_interval is not None and ask.check_interval < SHORTEST_INTERVAL:
        found.append(TOO_OFTEN)
    return found


def not_taken(requested: Meta, running: Meta) -> list[str]:
    """The note for a caller that gets a running process which was started with other notification options."""
    return [] if _notifications(requested) == _notifications(running) else [NOT_TAKEN]


def _notifications(meta: Meta) -> tuple[object, ...]:
    return meta.notify, meta.end_after_watch, meta.watch, meta.watch_regex, meta.check_interval, meta.origin
