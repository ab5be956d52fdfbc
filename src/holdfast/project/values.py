"""The values that a project file may give to the options of a process, each checked for what it may be."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from holdfast.errors import BadValue
from holdfast.model.units import parse_seconds, parse_size, parse_window
from holdfast.ops.declare import Field
from holdfast.ops.kinds import ChoiceKind
from holdfast.ops.start import Start

Check: TypeAlias = Callable[[object], Any]

_KINDS: dict[type, str] = {bool: "a truth value", str: "a text", list: "a list", dict: "a table"}
_LARGEST = 1 << 62


class Wrong(Exception):
    """A value that cannot be meant: what it must be, and what to write instead."""

    def __init__(self, why: str, next: str) -> None:
        super().__init__(why)
        self.why = why
        self.next = next


def kind(value: object) -> str:
    return _KINDS.get(type(value), "a number" if isinstance(value, (int, float)) else "a date or time")


def flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise Wrong(f"must be true or false, not {kind(value)}", "write true or false, without quotes")
    return value


def text(value: object) -> str:
    if not isinstance(value, str):
        raise Wrong(f"must be a text, not {kind(value)}", "put it in quotes")
    if not value or "\0" in value:
        raise Wrong("is empty" if not value else "contains a NUL character", "write what is meant, or leave it out")
    return value


def texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise Wrong("must be a list of texts", 'write it as ["one", "two"]')
    return [text(entry) if entry else entry for entry in value]


def command(value: object) -> str | list[str]:
    """A text for the shell, or an argument list."""
    if isinstance(value, list):
        words = texts(value)
        if not words or not words[0]:
            raise Wrong("is empty", 'write it as ["program", "argument"]')
        return words
    if not isinstance(value, str):
        raise Wrong(f"must be a text or a list of texts, not {kind(value)}", "put it in quotes")
    if not value.strip() or "\0" in value:
        raise Wrong("is empty" if not value.strip() else "contains a NUL character", "write the command to run")
    return value


def whole(least: int, most: int = _LARGEST) -> Check:
    def check(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Wrong(f"must be a whole number, not {kind(value)}", "write it in digits, without quotes")
        if not least <= value <= most:
            span = f"{least} or more" if most == _LARGEST else f"between {least} and {most}"
            raise Wrong(f"must be {span}, not {str(value)[:40]}", f"choose a number that is {span}")
        return value

    return check


def above_zero(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise Wrong(f"must be a number, not {kind(value)}", "write it in digits, without quotes")
    if value != value or value in (math.inf, -math.inf):
        raise Wrong(f"must be a finite number, not {value}", "choose a number, or leave it out")
    if not 0 < value < _LARGEST:
        way = "larger" if value <= 0 else "smaller"
        raise Wrong(f"must be more than 0 and less than 2^62, not {value!r:.40}", f"choose a {way} number")
    return float(value)


def seconds(value: object) -> float:
    """A number of seconds, or a text like "10m"."""
    if not isinstance(value, str):
        return above_zero(value)
    found: float = _parsed(parse_seconds, value)
    return above_zero(found)


def size(value: object) -> int:
    """A number of bytes, or a text like "10M"."""
    found: int = whole(1)(_parsed(parse_size, value) if isinstance(value, str) else value)
    return found


def window(value: object) -> tuple[int, int]:
    found: tuple[int, int] = _parsed(parse_window, text(value))
    return found


def pattern(value: object) -> str:
    try:
        re.compile(text(value))
    except (re.error, RecursionError, OverflowError) as broken:
        raise Wrong(f"is no regular expression: {broken}", "mend it; '…' quotes need no doubled backslashes") from None
    return text(value)


def url(value: object) -> str:
    if not text(value).startswith(("http://", "https://")):
        raise Wrong("must be an address", 'write it as "http://127.0.0.1:8080/health"')
    return text(value)


def table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Wrong(f"must be a table, not {kind(value)}", 'write it as { name = "value" }')
    return value


def codes(value: object) -> list[int]:
    if not isinstance(value, list) or not value:
        raise Wrong("must be a list of exit codes", "write it as [0, 3]")
    return [whole(0, 255)(code) for code in value]


def choice(*choices: str) -> Check:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise Wrong(f"cannot be {value!r:.60}", f"one of: {', '.join(choices)}")
        return value

    return check


def variables(value: object) -> dict[str, str]:
    """An environment. A whole number is taken as its digits; what could be written in several ways must be a text."""
    if not isinstance(value, dict):
        raise Wrong(f"must be a table, not {kind(value)}", 'write it as { NAME = "value" }')
    for name, entry in value.items():
        if not name or "=" in name or "\0" in name:
            raise Wrong(f"has a variable called {name!r:.60}", "name it with letters, digits and _")
        if not isinstance(entry, (str, int)) or isinstance(entry, bool):
            raise Wrong(f"has {kind(entry)} as {name[:60]}", f'write the text that is meant: {name[:60]} = "…"')
        if "\0" in str(entry):
            raise Wrong(f"has a NUL character in {name[:60]}", "an environment cannot hold it")
    return {name: str(entry) for name, entry in value.items()}


def _parsed(parse: Callable[[str], Any], value: str) -> Any:
    try:
        return parse(value)
    except BadValue as refused:
        raise Wrong(f"cannot be {value!r:.60}", refused.next) from None


def _check_of(declared: Field) -> Check:
    """How an option is checked in a file: a text such as "10M" is taken where the command line takes it."""
    kind, annotation = declared.kind, declared.annotation.removesuffix(" | None")
    if isinstance(kind, ChoiceKind):
        return choice(*kind.choices)
    if annotation == "Integer":
        return whole(declared.bounds.get("least", 0), declared.bounds.get("most", _LARGEST))
    return _BY_KIND[annotation]


_BY_KIND: dict[str, Check] = {
    "Flag": flag,
    "Text": text,
    "Seconds": seconds,
    "Size": size,
    "Number": above_zero,
    "Object": table,
    "list[Text]": texts,
    "list[Integer]": codes,
}
#: Options of `run` that a file says otherwise, or that are not for a file.
_NOT_IN_FILES = ("name", "session", "task", "parent_session", "cwd", "grant", "if_running")
#: What a process may have besides its command, directory, environment and needs: the options of `holdfast run`.
OPTIONS: dict[str, Check] = {
    **{name: _check_of(one) for name, one in Start.FIELDS.items() if one.flags and name not in _NOT_IN_FILES},
    "size": window,
    "ready_log": pattern,
    "ready_http": url,
}


def similar(word: str, known: Sequence[str]) -> str:
    """` (did you mean …?)`, where something comes close."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1)
    return f" (did you mean {close[0]}?)" if close else ""
