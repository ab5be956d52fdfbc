"""Checks for the values in a project file. The options of a process are derived from the `start` operation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from holdfast.errors import BadValue
from holdfast.model.units import parse_seconds, parse_size, parse_window
from holdfast.ops.declare import Field
from holdfast.ops.kinds import ChoiceKind
from holdfast.ops.start import Start

Check: TypeAlias = Callable[[object], Any]

_KINDS: dict[type, str] = {bool: "a boolean", str: "a string", list: "a list", dict: "a table"}
_LARGEST = 1 << 62


class InvalidValue(Exception):
    """`why` says what is wrong with a value, `next` what to write instead."""

    def __init__(self, why: str, next: str) -> None:
        super().__init__(why)
        self.why = why
        self.next = next


def kind(value: object) -> str:
    return _KINDS.get(type(value), "a number" if isinstance(value, (int, float)) else "a date or time")


def flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue(f"must be true or false, not {kind(value)}", "write true or false, without quotes")
    return value


def text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"must be a string, not {kind(value)}", "put it in quotes")
    if not value or "\0" in value:
        raise InvalidValue("is empty" if not value else "contains a NUL character", "write a value, or leave it out")
    return value


def texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise InvalidValue("must be a list of strings", 'write it as ["one", "two"]')
    return [text(entry) if entry else entry for entry in value]


def command(value: object) -> str | list[str]:
    """A string for the shell, or an argument list."""
    if isinstance(value, list):
        words = texts(value)
        if not words or not words[0]:
            raise InvalidValue("is empty", 'write it as ["program", "argument"]')
        return words
    if not isinstance(value, str):
        raise InvalidValue(f"must be a string or a list of strings, not {kind(value)}", "put it in quotes")
    if not value.strip() or "\0" in value:
        raise InvalidValue("is empty" if not value.strip() else "contains a NUL character", "write the command to run")
    return value


def whole(least: int, most: int = _LARGEST) -> Check:
    def check(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidValue(f"must be an integer, not {kind(value)}", "write it in digits, without quotes")
        if not least <= value <= most:
            span = f"{least} or more" if most == _LARGEST else f"between {least} and {most}"
            raise InvalidValue(f"must be {span}, not {str(value)[:40]}", f"choose a number that is {span}")
        return value

    return check


def any_whole(value: object) -> int:
    found: int = whole(-_LARGEST)(value)
    return found


def above_zero(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidValue(f"must be a number, not {kind(value)}", "write it in digits, without quotes")
    if value != value or value in (math.inf, -math.inf):
        raise InvalidValue(f"must be a finite number, not {value}", "choose a number, or leave it out")
    if not 0 < value < _LARGEST:
        way = "larger" if value <= 0 else "smaller"
        raise InvalidValue(f"must be more than 0 and less than 2^62, not {value!r:.40}", f"choose a {way} number")
    return float(value)


def seconds(value: object) -> float:
    """A number of seconds, or a string like "10m"."""
    if not isinstance(value, str):
        return above_zero(value)
    found: float = _parsed(parse_seconds, value)
    return above_zero(found)


def size(value: object) -> int:
    """A number of bytes, or a string like "10M"."""
    found: int = whole(1)(_parsed(parse_size, value) if isinstance(value, str) else value)
    return found


def window(value: object) -> tuple[int, int]:
    found: tuple[int, int] = _parsed(parse_window, text(value))
    return found


def pattern(value: object) -> str:
    """A regular expression of the daemon's engine (RE2)."""
    import re2

    try:
        re2.compile(text(value))
    except re2.error as broken:
        why = broken.args[0].decode() if isinstance(broken.args[0], bytes) else broken
        hint = "correct it; '…' quotes need no doubled backslashes"
        raise InvalidValue(f"is not a regular expression: {why}", hint) from None
    return text(value)


def patterns(value: object) -> list[str]:
    return [pattern(entry) for entry in texts(value)]


def url(value: object) -> str:
    if not text(value).startswith(("http://", "https://")):
        raise InvalidValue("must be a URL", 'write it as "http://127.0.0.1:8080/health"')
    return text(value)


def table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValue(f"must be a table, not {kind(value)}", 'write it as { name = "value" }')
    return value


def codes(value: object) -> list[int]:
    if not isinstance(value, list) or not value:
        raise InvalidValue("must be a list of exit codes", "write it as [0, 3]")
    return [whole(0, 255)(code) for code in value]


def choice(*choices: str) -> Check:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise InvalidValue(f"cannot be {value!r:.60}", f"one of: {', '.join(choices)}")
        return value

    return check


def variables(value: object) -> dict[str, str]:
    """Environment variables. Integers become their digits; other kinds have several spellings and must be strings."""
    if not isinstance(value, dict):
        raise InvalidValue(f"must be a table, not {kind(value)}", 'write it as { NAME = "value" }')
    for name, entry in value.items():
        if not name or "=" in name or "\0" in name:
            raise InvalidValue(f"has a variable called {name!r:.60}", "name it with letters, digits and _")
        if not isinstance(entry, (str, int)) or isinstance(entry, bool):
            raise InvalidValue(f"has {kind(entry)} as {name[:60]}", f'write it as a string: {name[:60]} = "…"')
        if "\0" in str(entry):
            raise InvalidValue(f"has a NUL character in {name[:60]}", "an environment cannot hold it")
    return {name: str(entry) for name, entry in value.items()}


def _parsed(parse: Callable[[str], Any], value: str) -> Any:
    try:
        return parse(value)
    except BadValue as refused:
        raise InvalidValue(f"cannot be {value!r:.60}", refused.next) from None


def _check_of(declared: Field) -> Check:
    """The check of one option: a string such as "10M" is accepted where the command line accepts it."""
    annotation = declared.annotation.removesuffix(" | None")
    if isinstance(declared.kind, ChoiceKind):
        return choice(*declared.kind.choices)
    read = _BY_KIND[annotation]

    def check(value: object) -> Any:
        found = read(value)
        try:
            declared.check(found)
        except BadValue as refused:
            raise InvalidValue(refused.message.removeprefix(f"{declared.name} "), "correct the value") from None
        return found

    return check


_BY_KIND: dict[str, Check] = {
    "Flag": flag,
    "Integer": any_whole,
    "Text": text,
    "Seconds": seconds,
    "Size": size,
    "Number": above_zero,
    "Object": table,
    "list[Text]": texts,
    "list[Integer]": codes,
}
#: Options of `run` that a file expresses in another way, or that do not apply to a file.
_NOT_IN_FILES = ("name", "session", "task", "parent_session", "cwd", "grant", "if_running")
#: The options of `holdfast run` that a process in a file may have, by their names.
OPTIONS: dict[str, Check] = {
    **{name: _check_of(one) for name, one in Start.FIELDS.items() if one.flags and name not in _NOT_IN_FILES},
    "size": window,
    "ready_log": pattern,
    "watch_regex": patterns,
    "ready_http": url,
}


def similar(word: str, known: Sequence[str]) -> str:
    """` (did you mean …?)` when a known word is similar; else empty."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1)
    return f" (did you mean {close[0]}?)" if close else ""
