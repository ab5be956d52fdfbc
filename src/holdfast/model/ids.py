"""Ids of processes, and valid names of processes and sessions."""

from __future__ import annotations

import re
from typing import NewType

ProcessId = NewType("ProcessId", str)

PREFIX = "proc_"

_ID = re.compile(r"proc_[0-9a-f]{12}\Z")
_ID_PREFIX = re.compile(r"(?:proc_)?([0-9a-f]{4,12})\Z")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_SESSION_LONGEST = 256


def is_id(text: str) -> bool:
    return _ID.match(text) is not None


def id_prefix(text: str) -> str | None:
    """`text` as a prefix of ids; None when it cannot be one."""
    found = _ID_PREFIX.match(text)
    return PREFIX + found[1] if found else None


def is_name(text: str) -> bool:
    """Whether it is a valid name of a process. A name must not look like an id."""
    return _NAME.match(text) is not None and not text.startswith(PREFIX)


def is_session(text: str) -> bool:
    return 0 < len(text) <= _SESSION_LONGEST and text.isprintable()
