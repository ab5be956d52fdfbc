"""Arguments as they come over the wire, each checked for what it may be. Whatever cannot be meant is a BadValue."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from holdfast.errors import BadValue
from holdfast.model.ids import is_session

Ask = Mapping[str, Any]
Choice = TypeVar("Choice", bound=str)

#: The longest text that is taken: what the system takes as one argument of a command.
LONGEST_TEXT = 128 << 10
_LARGEST_NUMBER = 1 << 62

_KINDS: dict[type, str] = {
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


def text(ask: Ask, key: str, longest: int = LONGEST_TEXT) -> str | None:
    """A text without NUL that can be encoded; None when it is not given."""
    value = ask.get(key)
    return None if value is None else checked_text(value, key, longest)


def needed_text(ask: Ask, key: str, longest: int = LONGEST_TEXT) -> str:
    value = text(ask, key, longest)
    if not value:
        raise BadValue(f"{key} is missing")
    return value


def checked_text(value: object, key: str, longest: int = LONGEST_TEXT) -> str:
    """Bytes that are no UTF-8, as in some file names, may be in it the way Python has them: as U+DC80 to U+DCFF."""
    if not isinstance(value, str):
        raise BadValue(f"{key} must be a text, not {_kind(value)}")
    if "\0" in value:
        raise BadValue(f"{key} contains a NUL character")
    try:
        size = len(value.encode(errors="surrogateescape"))
    except UnicodeEncodeError:
        raise BadValue(f"{key} contains half a character") from None
    if size > longest:
        raise BadValue(f"{key} has {size} bytes, {longest} are the most")
    return value


def flag(ask: Ask, key: str, default: bool = False) -> bool:
    value = ask.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise BadValue(f"{key} must be true or false, not {_kind(value)}")
    return value


def whole_number(ask: Ask, key: str) -> int | None:
    """Any whole number; None when it is not given."""
    value = ask.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadValue(f"{key} must be a whole number, not {_kind(value)}")
    return value


def integer(ask: Ask, key: str, least: int, most: int = _LARGEST_NUMBER) -> int | None:
    value = whole_number(ask, key)
    if value is None:
        return None
    if not least <= value <= most:
        raise BadValue(f"{key} must be {_range(least, most)}, not {_shortened(value)}")
    return value


def number(ask: Ask, key: str, least: float, most: float) -> float | None:
    """A finite number within these bounds; None when it is not given."""
    value = ask.get(key)
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise BadValue(f"{key} must be a number, not {_kind(value)}")
    if not least <= value <= most:  # also refuses nan
        raise BadValue(f"{key} must be between {least:g} and {most:g}, not {_shortened(value)}")
    return float(value)


def seconds(ask: Ask, key: str, zero: bool = True) -> float | None:
    """A finite number of seconds, more than none unless `zero`; None when it is not given."""
    value = ask.get(key)
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise BadValue(f"{key} must be a number of seconds, not {_kind(value)}")
    if not math.isfinite(value) or value < 0 or value > _LARGEST_NUMBER or (value == 0 and not zero):
        raise BadValue(f"{key} must be {'0 or more' if zero else 'more than 0'} seconds, not {_shortened(value)}")
    return float(value)


def choice(ask: Ask, key: str, choices: Sequence[Choice], default: Choice) -> Choice:
    value = ask.get(key)
    if value is None:
        return default
    for known in choices:
        if value == known:
            return known
    raise BadValue(f"{key} must be one of {', '.join(choices)}, not {_shortened(value)}")


def session(ask: Ask, key: str = "session") -> str | None:
    value = text(ask, key, 4096)
    if value is not None and not is_session(value):
        raise BadValue(f"{key} must have 1 to 256 printable characters")
    return value


def texts(ask: Ask, key: str, most: int) -> list[str] | None:
    """A list of texts; None when it is not given."""
    value = ask.get(key)
    if value is None:
        return None
    if not isinstance(value, list):
        raise BadValue(f"{key} must be a list, not {_kind(value)}")
    if len(value) > most:
        raise BadValue(f"{key} has {len(value)} entries, {most} are the most")
    return [checked_text(entry, key) for entry in value]


def codes(ask: Ask, key: str) -> tuple[int, ...]:
    """Exit codes, each once; empty when they are not given."""
    value = ask.get(key)
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)) or not value:
        raise BadValue(f"{key} must be a list of exit codes, not {_shortened(value)}")
    for code in value:
        if not isinstance(code, int) or isinstance(code, bool) or not 0 <= code <= 255:
            raise BadValue(f"{key} must be exit codes from 0 to 255, not {_shortened(code)}")
    return tuple(sorted(set(value)))


def environment(ask: Ask, key: str) -> dict[str, str]:
    """Names and values that can be an environment; empty when it is not given."""
    value = ask.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadValue(f"{key} must be an object, not {_kind(value)}")
    _check_variables(value, key)
    return value


def _check_variables(variables: dict[str, Any], key: str) -> None:
    """All at once, for there are many. They may hold any bytes: callers pass on what they got."""
    try:
        everything = "".join((*variables, *variables.values()))
        os.fsencode(everything)
    except (TypeError, UnicodeEncodeError):
        raise BadValue(f"{key} has names or values that are no texts") from None
    if "\0" in everything:
        raise BadValue(f"{key} contains a NUL character")
    for name in variables:
        if not name or "=" in name:
            raise BadValue(f"{key} has a variable called {_shortened(name)}")


def _kind(value: object) -> str:
    return "null" if value is None else _KINDS.get(type(value), type(value).__name__)


def _range(least: int, most: int) -> str:
    return f"{least} or more" if most == _LARGEST_NUMBER else f"between {least} and {most}"


def _shortened(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"
