"""A start as it was asked for, read and checked: every hostile value ends here."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from holdfast.daemon import labels, values, wanted_news, wanted_signs
from holdfast.daemon.values import Ask
from holdfast.errors import BadValue, CommandNotFound, NotExecutable, StartFailed
from holdfast.model import duplicates
from holdfast.model.duplicates import IfRunning
from holdfast.model.ids import ProcessId, is_id, is_name
from holdfast.model.process import DeadlineAction, Lifetime, Meta, RestartPolicy
from holdfast.model.units import checked_window
from holdfast.ops.start import Start
from holdfast.settings import Settings

_MOST_ARGUMENTS = 100_000
_SMALLEST_LOG = 64 << 10
_LARGEST_LOG = 1 << 50
_COLS, _ROWS = 120, 30
_UMASK = 0o022
#: Nothing starts with less.
_LEAST_MEMORY = 1 << 20
_MOST_MEMORY = 1 << 50
#: A millisecond in a hundred is the least that the kernel shares out.
_LEAST_CPUS, _MOST_CPUS = 0.01, 100_000.0
_MOST_PIDS = 1 << 22

_LIFETIMES: tuple[Lifetime, ...] = ("detached", "session", "daemon")
_ACTIONS: tuple[DeadlineAction, ...] = ("kill", "notify")
_POLICIES: tuple[RestartPolicy, ...] = ("never", "on-failure", "always")
_DEFAULT_RESTARTS = 5
_MOST_RESTARTS = 1_000_000
_DEFAULT_DELAY = 1.0
_LONGEST_DELAY = 86400.0


class Wanted(NamedTuple):
    """A start that can be attempted."""

    meta: Meta
    shell: str | None
    """The shell that was asked for; None for the usual one. Of no interest where `text` is None."""
    text: str | None
    """The command text; None when it runs without a shell."""
    env: dict[str, str]
    grant: dict[str, str]
    umask: int
    if_running: IfRunning
    is_clean: bool = False
    """Whether secrets are left out of its environment."""
    removed: tuple[str, ...] = ()
    """The names of those that were."""
    launch: dict[str, Any] = {}  # noqa: RUF012 - never changed
    """What the keeper applies when it launches the command: fields that are declared as `launch`."""


def read(ask: Ask, settings: Settings, caller: str | None) -> Wanted:
    """Raises BadValue for whatever cannot be meant."""
    text, argv = _command(ask)
    pty = values.flag(ask, "pty")
    cols, rows = _window(ask, pty)
    grant = values.environment(ask, "grant")
    meta = Meta(
        id=_id(ask),
        command=text if text is not None else shlex.join(argv),
        argv=tuple(argv),
        cwd=_cwd(ask),
        session=values.session(ask) or caller or "default",
        requested_at=time.time(),
        name=_name(ask),
        task=values.session(ask, "task"),
        parent_session=values.session(ask, "parent_session"),
        lifetime=values.choice(ask, "lifetime", _LIFETIMES, "detached"),
        pty=pty,
        stdin=values.flag(ask, "stdin"),
        split=_split(ask, pty),
        cols=cols,
        rows=rows,
        log_cap=values.integer(ask, "log_cap", _SMALLEST_LOG, _LARGEST_LOG) or max(_SMALLEST_LOG, settings.log_cap),
        deadline=values.seconds(ask, "deadline", zero=False),
        deadline_action=values.choice(ask, "deadline_action", _ACTIONS, "kill"),
        given=tuple(sorted(grant)),
        **({} if _SELDOM.isdisjoint(ask) else _seldom_said(ask)),
    )
    umask = values.integer(ask, "umask", 0, 0o777)
    return Wanted(
        meta,
        shell=values.text(ask, "shell", 4096) or None,
        text=text,
        env=values.environment(ask, "env"),
        grant=grant,
        umask=_UMASK if umask is None else umask,
        if_running=values.choice(ask, "if_running", duplicates.CHOICES, "allow"),
        is_clean=values.flag(ask, "clean"),
        launch={name: _LAUNCH[name].check(ask[name]) for name in _LAUNCH if ask.get(name) is not None},
    )


def _seldom_said(ask: Ask) -> dict[str, Any]:
    """What most starts say nothing about, and need not pay for."""
    return {
        **_restarts(ask),
        **wanted_signs.read(ask),
        **wanted_news.read(ask),
        "labels": labels.read(ask),
        "memory": values.integer(ask, "memory", _LEAST_MEMORY, _MOST_MEMORY),
        "cpus": values.number(ask, "cpus", _LEAST_CPUS, _MOST_CPUS),
        "pids": values.integer(ask, "pids", 1, _MOST_PIDS),
        "gated": values.flag(ask, "gate"),
        "sudo": values.flag(ask, "sudo"),
        "fingerprint": values.text(ask, "fingerprint", 128),
    }


_LAUNCH = {name: one for name, one in Start.FIELDS.items() if one.launch}

_SELDOM = frozenset(
    {
        *("restart", "restart_limit", "restart_delay", "success_codes", "stop_cmd"),
        *("ready_log", "ready_port", "ready_http", "ready_uptime", "ready_timeout", "stall"),
        *("notify", "watch", "watch_regex", "check_interval", "origin"),
        *("labels", "memory", "cpus", "pids", "gate", "sudo", "fingerprint"),
    }
)


def through_shell(text: str, shell: str | None, settings: Settings, env: Mapping[str, str]) -> tuple[str, ...]:
    """The argv that runs a command text. Raises StartFailed when there is no shell, or not the one that is wanted."""
    path = env.get("PATH", os.defpath)
    named = shell or settings.shell
    if named:
        _check_shell(named, path)
    return (named or usual_shell(path), "-c", text)


def _check_shell(shell: str, path: str) -> None:
    """The error of a start would speak of the command, which has nothing to do with it."""
    if shutil.which(shell, path=path) is not None:
        return
    if "/" in shell and os.path.exists(shell):
        raise NotExecutable(f"the shell {shell[:200]} cannot be executed", next="name another one with --shell")
    raise CommandNotFound(f"there is no shell {shell[:200]}", next="name another one with --shell")


@lru_cache(maxsize=64)
def usual_shell(path: str) -> str:
    """bash where there is one on the path, else sh."""
    found = shutil.which("bash", path=path) or shutil.which("sh", path="/bin:/usr/bin")
    if found is None:
        raise StartFailed("there is no shell on this machine", next="give the command as an argv, or set `shell`")
    return found


def _id(ask: Ask) -> ProcessId:
    value = values.needed_text(ask, "id", 64)
    if not is_id(value):
        raise BadValue("id must be proc_ and 12 lowercase hex digits")
    return ProcessId(value)


def _name(ask: Ask) -> str | None:
    value = values.text(ask, "name", 4096)
    if value is not None and not is_name(value):
        raise BadValue("name must have 1 to 64 of A-Z a-z 0-9 . _ - and not begin like an id")
    return value


def _command(ask: Ask) -> tuple[str | None, list[str]]:
    text, argv = values.text(ask, "command"), values.texts(ask, "argv", _MOST_ARGUMENTS)
    if text is not None and argv is not None:
        raise BadValue("either command or argv, not both")
    if argv is not None:
        if not argv or not argv[0]:
            raise BadValue("the command is empty")
        return None, argv
    if text is None:
        raise BadValue("the command is missing")
    return text, []


def _cwd(ask: Ask) -> str:
    value = values.needed_text(ask, "cwd", 4095)
    if not os.path.isabs(value):
        raise BadValue(f"cwd must be an absolute path, not {value[:60]!r}")
    return value


def _split(ask: Ask, pty: bool) -> bool:
    split = values.flag(ask, "split")
    if split and pty:
        raise BadValue("a terminal has one stream of output: split and pty exclude each other")
    return split


def _restarts(ask: Ask) -> dict[str, Any]:
    """What has to do with its being run again, and with how it is told to stop."""
    limit = values.integer(ask, "restart_limit", 0, _MOST_RESTARTS)
    delay = values.seconds(ask, "restart_delay", zero=False)
    return {
        "restart": values.choice(ask, "restart", _POLICIES, "never"),
        "restart_limit": _DEFAULT_RESTARTS if limit is None else limit,
        "restart_delay": _DEFAULT_DELAY if delay is None else min(delay, _LONGEST_DELAY),
        "success_codes": values.codes(ask, "success_codes") or (0,),
        "stop_cmd": _stop_cmd(ask),
    }


def _stop_cmd(ask: Ask) -> str | None:
    text = values.text(ask, "stop_cmd")
    if text is not None and not text.strip():
        raise BadValue("stop_cmd is empty")
    return text


def _window(ask: Ask, pty: bool) -> tuple[int, int] | tuple[None, None]:
    cols, rows = values.whole_number(ask, "cols"), values.whole_number(ask, "rows")
    window = checked_window(_COLS if cols is None else cols, _ROWS if rows is None else rows)
    return window if pty else (None, None)
