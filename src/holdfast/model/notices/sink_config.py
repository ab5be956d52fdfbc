"""`[[sinks]]` of the configuration -> sinks. Errors are one line and never show a possible secret. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.errors import BadValue
from holdfast.model.notices.sinks import (
    DEFAULT_KINDS,
    DEFAULT_TRIES,
    KINDS,
    OUTCOMES,
    Outcomes,
    Quiet,
    Secret,
    Sink,
    Way,
)
from holdfast.model.process import is_name

MOST_SINKS = 100
_MOST_PATTERNS = 1000
_LONGEST = 8192
_MOST_TRIES = 1000
_QUIET = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\s*-\s*(?:([01]\d|2[0-3]):([0-5]\d)|24:00)\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_WAYS: dict[str, Way] = {"url": "apprise", "webhook": "webhook"}
_KEYS = (
    *("name", "url", "url_env", "url_file", "webhook", "webhook_env", "webhook_file", "desktop"),
    *("secret", "secret_env", "secret_file", "kinds", "sessions", "outcomes", "quiet", "tries", "enabled"),
)


class _Table:
    """One table of the file, with checked access to its values."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values = values
        self.where = where

    def wrong(self, what: str, next: str) -> BadValue:
        return BadValue(f"{self.where}: {what}", next=next)

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value or len(value) > _LONGEST or not value.isprintable():
            raise self.wrong(f"{key} must be a string of 1 to {_LONGEST} printable characters", f'write {key} = "…"')
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(f"{key} must be true or false", f"write {key} = true")
        return value

    def texts(self, key: str) -> list[str] | None:
        value = self.values.get(key)
        if value is None:
            return None
        if (
            not isinstance(value, list)
            or not 0 < len(value) <= _MOST_PATTERNS
            or not all(isinstance(one, str) and 0 < len(one) <= _LONGEST for one in value)
        ):
            raise self.wrong(f"{key} must be a list of strings, at least one", f'write {key} = ["…"]')
        return value

    def secret(self, key: str) -> Secret | None:
        """The secret under KEY, or the variable under KEY_env or the file under KEY_file that has it."""
        found = Secret(self.text(key), self.text(f"{key}_env"), self.text(f"{key}_file"))
        if sum(one is not None for one in found) > 1:
            raise self.wrong(f"{key}, {key}_env and {key}_file exclude each other", "keep one of them")
        if found.env is not None and not _VARIABLE.match(found.env):
            raise self.wrong(f"{key}_env is not a variable name", f'write {key}_env = "NAME"')
        return found if any(found) else None


def read_sinks(value: object, path: str) -> tuple[Sink, ...]:
    """Raises BadValue. `path` is that of the file, for the errors."""
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise BadValue(f"sinks in {path} must be tables", next="begin each with a line [[sinks]]")
    if len(value) > MOST_SINKS:
        raise BadValue(
            f"{len(value)} sinks in {path}, {MOST_SINKS} are the most",
            next="use one sink for several kinds or sessions",
        )
    found: dict[str, Sink] = {}
    for number, values in enumerate(value, start=1):
        sink = _sink(values, number, path)
        if sink.name in found:
            raise BadValue(f"two sinks in {path} are called {sink.name!r}", next="give each a name of its own")
        found[sink.name] = sink
    return tuple(found.values())


def _sink(values: Mapping[str, Any], number: int, path: str) -> Sink:
    table = _Table(values, f"sink {number} in {path}")
    name = table.text("name")
    if name is None or not is_name(name):
        raise table.wrong("name must have 1 to 64 letters, digits, dots, dashes", 'write name = "phone"')
    table.where = f"sink {name!r} in {path}"
    if unknown := sorted(values.keys() - set(_KEYS)):
        raise table.wrong(f"unknown key {unknown[0][:80]!r}", f"known: {', '.join(_KEYS)}")
    way, address = _way(table)
    secret = table.secret("secret")
    if secret is not None and way != "webhook":
        raise table.wrong("only a webhook is signed with a secret", "remove the secret, or use webhook")
    return Sink(
        name,
        way,
        address,
        secret or Secret(),
        frozenset(_kinds(table)),
        tuple(table.texts("sessions") or ("*",)),
        _outcomes(table),
        _quiet(table),
        _tries(table),
        table.flag("enabled", True),
    )


def _way(table: _Table) -> tuple[Way, Secret]:
    found: list[tuple[Way, Secret]] = []
    for key, way in _WAYS.items():
        if (address := table.secret(key)) is not None:
            found.append((way, address))
    if table.flag("desktop", False):
        found.append(("desktop", Secret()))
    if len(found) != 1:
        raise table.wrong("exactly one of url, webhook and desktop says where to send", 'e.g. webhook = "https://…"')
    way, address = found[0]
    if address.text is not None and (trouble := trouble_of(way, address.text)):
        raise table.wrong(trouble, "see docs/sinks.md")
    return found[0]


def trouble_of(way: Way, address: str) -> str:
    """Why this is not a valid address; empty when it is."""
    try:
        from urllib.parse import urlsplit

        parts = urlsplit(address)
        good = bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
        parts = None
    if not address.isprintable() or " " in address:
        return "the address has spaces or control characters"
    if way == "webhook":
        good = good and parts is not None and parts.scheme in ("http", "https")
        return "" if good else "webhook must be a URL that begins with http:// or https://"
    return "" if "://" in address else "url must be an Apprise URL, such as ntfy://… or mailto://…"


def _kinds(table: _Table) -> list[Any]:
    kinds = table.texts("kinds")
    if kinds is None:
        return list(DEFAULT_KINDS)
    for kind in kinds:
        if kind not in KINDS:
            raise table.wrong(f"there is no kind {kind[:80]!r}", f"known: {', '.join(KINDS)}")
    return kinds


def _outcomes(table: _Table) -> Outcomes:
    value = table.values.get("outcomes", "any")
    for known in OUTCOMES:
        if value == known:
            return known
    raise table.wrong("outcomes has an unknown value", f"one of: {', '.join(OUTCOMES)}")


def _quiet(table: _Table) -> Quiet | None:
    text = table.text("quiet")
    if text is None:
        return None
    found = _QUIET.match(text)
    if found is None:
        raise table.wrong("quiet must be two times of the day", 'write quiet = "22:00-07:00"')
    hours = [int(one or 0) for one in found.groups()]
    quiet = Quiet(hours[0] * 60 + hours[1], hours[2] * 60 + hours[3])
    if quiet.start == quiet.end:
        raise table.wrong("quiet would be all day", "write enabled = false")
    return quiet


def _tries(table: _Table) -> int:
    value = table.values.get("tries", DEFAULT_TRIES)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_TRIES:
        raise table.wrong(f"tries must be a number from 1 to {_MOST_TRIES}", "write tries = 20")
    return value
