"""Labels as they come over the wire: a few short texts by key."""

from __future__ import annotations

from holdfast.daemon.values import Ask, checked_text
from holdfast.errors import BadValue

_MOST = 64
_LONGEST_KEY = 128
_LONGEST = 4096


def read(ask: Ask) -> dict[str, str]:
    """Empty when they are not given. Raises BadValue."""
    value = ask.get("labels")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadValue("labels must be an object")
    if len(value) > _MOST:
        raise BadValue(f"labels has {len(value)} entries, {_MOST} are the most")
    for key, text in value.items():
        if not checked_text(key, "labels", _LONGEST_KEY):
            raise BadValue("labels has an entry without a name")
        checked_text(text, f"labels.{key}", _LONGEST)
    return value
