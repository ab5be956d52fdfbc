"""The signs by which a process is to be judged, as they were asked for: ready when, stalled when."""

from __future__ import annotations

from typing import TypedDict

from holdfast.daemon import values
from holdfast.daemon.values import Ask
from holdfast.errors import BadValue
from holdfast.model.readiness import KINDS

_LONGEST_PATTERN = 4096
_LONGEST_URL = 4096
_LAST_PORT = 65535
_SHORTEST_STALL = 0.05


class Signs(TypedDict):
    """Fields of Meta."""

    ready_log: str | None
    ready_port: int | None
    ready_http: str | None
    ready_uptime: float | None
    ready_timeout: float | None
    stall: float | None


def read(ask: Ask) -> Signs:
    """Raises BadValue for whatever cannot be meant."""
    given = [f"ready_{kind}" for kind in KINDS if ask.get(f"ready_{kind}") is not None]
    if len(given) > 1:
        raise BadValue(f"either {' or '.join(given)}: a process is ready by one sign")
    timeout = values.seconds(ask, "ready_timeout", zero=False)
    if timeout is not None and not given:
        raise BadValue("ready_timeout without a sign to be ready by", next="add ready_log, ready_port or another")
    return Signs(
        ready_log=_pattern(ask),
        ready_port=values.integer(ask, "ready_port", 1, _LAST_PORT),
        ready_http=_url(ask),
        ready_uptime=values.seconds(ask, "ready_uptime"),
        ready_timeout=timeout,
        stall=_stall(ask),
    )


def _pattern(ask: Ask) -> str | None:
    pattern = values.text(ask, "ready_log", _LONGEST_PATTERN)
    if pattern is None:
        return None
    if not pattern:
        raise BadValue("ready_log is empty")
    from holdfast.logs.pattern import compile_pattern

    compile_pattern(pattern, key="ready_log")
    return pattern


def _url(ask: Ask) -> str | None:
    url = values.text(ask, "ready_http", _LONGEST_URL)
    if url is None:
        return None
    from holdfast.daemon.probes.http import parse_url

    parse_url(url, "ready_http")
    return url


def _stall(ask: Ask) -> float | None:
    seconds = values.seconds(ask, "stall", zero=False)
    if seconds is not None and seconds < _SHORTEST_STALL:
        raise BadValue(f"stall must be {_SHORTEST_STALL:g} seconds or more, not {seconds:g}")
    return seconds
