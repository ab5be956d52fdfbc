"""A start as it was requested: what the fields mean together, beyond what each may be by itself."""

from __future__ import annotations

import shlex
import time
from typing import Any, NamedTuple

from holdfast.daemon import wanted_news
from holdfast.errors import BadValue
from holdfast.model.ids import ProcessId
from holdfast.model.process import Meta
from holdfast.model.readiness import KINDS
from holdfast.ops.start import Start
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
        **wanted_news.read(ask),
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
