"""A start as it was asked for, read and checked: every hostile value ends here."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from holdfast.daemon import values
from holdfast.daemon.values import Ask
from holdfast.errors import BadValue, StartFailed
from holdfast.model import duplicates
from holdfast.model.duplicates import IfRunning
from holdfast.model.ids import ProcessId, is_id, is_name
from holdfast.model.process import DeadlineAction, Lifetime, Meta
from holdfast.settings import Settings

_MOST_ARGUMENTS = 100_000
_SMALLEST_LOG = 64 << 10
_LARGEST_LOG = 1 << 50
_MOST_COLS_OR_ROWS = 1000
_COLS, _ROWS = 120, 30
_UMASK = 0o022

_LIFETIMES: tuple[Lifetime, ...] = ("detached", "session", "daemon")
_ACTIONS: tuple[DeadlineAction, ...] = ("kill", "notify")


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


def read(ask: Ask, settings: Settings, caller: str | None) -> Wanted:
    """Raises BadValue for whatever cannot be meant."""
    text, argv = _command(ask)
    pty = values.flag(ask, "pty")
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
        cols=_measure(ask, "cols", pty, _COLS),
        rows=_measure(ask, "rows", pty, _ROWS),
        log_cap=values.integer(ask, "log_cap", _SMALLEST_LOG, _LARGEST_LOG) or max(_SMALLEST_LOG, settings.log_cap),
        deadline=values.seconds(ask, "deadline", zero=False),
        deadline_action=values.choice(ask, "deadline_action", _ACTIONS, "kill"),
        fingerprint=values.text(ask, "fingerprint", 128),
    )
    umask = values.integer(ask, "umask", 0, 0o777)
    return Wanted(
        meta,
        shell=values.text(ask, "shell", 4096) or None,
        text=text,
        env=values.environment(ask, "env"),
        grant=values.environment(ask, "grant"),
        umask=_UMASK if umask is None else umask,
        if_running=values.choice(ask, "if_running", duplicates.CHOICES, "allow"),
    )


def through_shell(text: str, shell: str | None, settings: Settings, env: Mapping[str, str]) -> tuple[str, ...]:
    """The argv that runs a command text. Raises StartFailed when there is no shell."""
    return (shell or settings.shell or usual_shell(env.get("PATH", os.defpath)), "-c", text)


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
    if text is None or not text.strip():
        raise BadValue("the command is empty")
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


def _measure(ask: Ask, key: str, pty: bool, default: int) -> int | None:
    value = values.integer(ask, key, 1, _MOST_COLS_OR_ROWS)
    return (value or default) if pty else None
