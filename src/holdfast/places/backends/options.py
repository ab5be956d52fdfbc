"""Checks of the options of backends: those of a table in config.toml, and those of a start.

A check returns the value, or raises ValueError with what the value must be.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.errors import BadValue
from holdfast.model.units import parse_seconds
from holdfast.places.backend import Options

#: The check of an option, and its default.
Rule = tuple[Callable[[object], Any], Any]


def check_options(
    backend: str, table: Options, given: Options, rules: Mapping[str, Rule], page: str = "backends"
) -> dict[str, Any]:
    """All options, with their defaults. Raises BadValue for the first one that is unknown or wrong."""
    options = {name: default for name, (_, default) in rules.items()}
    for name, value in {**table, **given}.items():
        if name not in rules:
            known = ", ".join(sorted(rules))
            raise BadValue(f"the backend {backend} has no option {name[:80]!r}", next=f"its options are {known}")
        try:
            options[name] = rules[name][0](value)
        except (ValueError, BadValue) as wrong:
            why = f": {wrong.message}" if isinstance(wrong, BadValue) else f" {wrong}"
            raise BadValue(f"{name} of the backend {backend}{why}", next=f"see holdfast docs {page}") from None
    return options


def a_text(what: str, pattern: str = r".{1,1000}") -> Callable[[object], str]:
    """A text without control characters; `what` says what it must be."""
    shape = re.compile(pattern)

    def check(value: object) -> str:
        if not isinstance(value, str) or not shape.fullmatch(value) or not value.isprintable():
            raise ValueError(f"must be {what}")
        return value

    return check


def a_number(least: float, most: float, what: str) -> Callable[[object], float]:
    def check(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"must be {what}")
        return float(value)

    return check


def a_whole_number(least: int, most: int, what: str) -> Callable[[object], int]:
    def check(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"must be {what}")
        return value

    return check


def a_time(least: float, most: float = math.inf) -> Callable[[object], float]:
    """A time, such as 15m or a number of seconds."""
    limits = f"from {least:g} to {most:g} seconds" if most < math.inf else f"of at least {least:g} seconds"
    check = a_number(least, min(most, 1e9), f"a time {limits}, such as 15m")
    return lambda value: check(parse_seconds(value) if isinstance(value, str) else value)


def a_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def variables(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise ValueError("must be a table of texts")
    for name, content in value.items():
        if not name or "=" in name or "\0" in name + content or name.startswith("HOLDFAST_"):
            raise ValueError(f"cannot have the variable {name[:80]!r}")
    return dict(value)


def a_file(value: object) -> str:
    path = os.path.expanduser(value) if isinstance(value, str) and value.isprintable() else ""
    if not os.path.isabs(path):
        raise ValueError("must be the absolute path of a file on this machine, or begin with ~/")
    return path
