"""Policies: files of rules, and their precedence.

Three files are read: the operator's, the user's, and the default one. A deny of the operator or the user always wins.
Then the operator's allow and ask come first, then the user's, then the defaults; within the defaults deny comes before
allow and allow before ask.
"""

from __future__ import annotations

import functools
import os
import tomllib
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, get_args

from holdfast.errors import BadValue
from holdfast.safety.places import HOMES
from holdfast.safety.rules import Action, Level, Rule, compiled, program_fits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OPERATOR_DIRECTORY = "/etc/holdfast"
PROFILES = ("default", "strict", "sandbox")
Network = Literal["none", "host"]
_LISTS = ("program", "subcommand", "arguments", "without", "path", "unless_path")
_TEXTS = ("name", "why", "at", "command")
_ORDER: tuple[tuple[Level, Action], ...] = (
    ("operator", "deny"), ("user", "deny"), ("operator", "allow"), ("operator", "ask"), ("user", "allow"),
    ("user", "ask"), ("default", "deny"), ("default", "allow"), ("default", "ask"),
)  # fmt: skip


def comes_before(level: Level, action: Action, other_level: Level, other_action: Action) -> bool:
    """Whether a rule of the one kind decides before one of the other."""
    return _ORDER.index((level, action)) < _ORDER.index((other_level, other_action))


@dataclass(frozen=True)
class SandboxProfile:
    """`profile = "sandbox"`: commands run in a sandbox unasked, and leaving it asks. What it grants them there."""

    level: Level = "user"
    network: Network = "none"
    writable: tuple[str, ...] = ()
    """Directories, beside that of the command."""


@dataclass(frozen=True)
class Policy:
    """Rules by level, and the level that asks for every program which no rule or table names."""

    levels: Mapping[Level, tuple[Rule, ...]]
    strict: Level | None = None
    sandbox: SandboxProfile | None = None

    @functools.cached_property
    def outside(self) -> Policy:
        """The policy for leaving the sandbox: only what a rule of the user or the operator allows, is allowed."""
        leave = Rule("ask", "leave-sandbox", "it is to run outside the sandbox")
        return Policy({**self.levels, "default": (leave,)})

    @functools.cached_property
    def ordered(self) -> tuple[tuple[Level, Rule], ...]:
        """All rules; the first that matches a call decides."""
        return tuple(
            (level, rule) for level, action in _ORDER for rule in self.levels.get(level, ()) if rule.action == action
        )

    @functools.cached_property
    def _by_program(self) -> dict[str, tuple[tuple[Level, Rule], ...]]:
        return {}

    def about(self, program: str) -> tuple[tuple[Level, Rule], ...]:
        """The rules that may match a program, in order."""
        found = self._by_program.get(program)
        if found is None:
            found = tuple(
                pair for pair in self.ordered if not pair[1].command and program_fits(program, pair[1].program)
            )
            if len(self._by_program) < 4096:
                self._by_program[program] = found
        return found

    @functools.cached_property
    def programs(self) -> frozenset[str]:
        """The programs that rules name."""
        return frozenset(name.lstrip("!") for _, rule in self.ordered for name in rule.program if "*" not in name)

    def about_text(self, text: str) -> Iterator[tuple[Level, Rule]]:
        """The rules about exactly this text, in order."""
        return ((level, rule) for level, rule in self.ordered if rule.command and rule.command.strip() == text.strip())

    def with_allowed(self, commands: Iterable[str]) -> Policy:
        """This policy, with exact command texts that the user has allowed permanently."""
        more = tuple(Rule("allow", "allowed by the user", "allowed by the user", command=text) for text in commands)
        return replace(self, levels={**self.levels, "user": (*self.levels.get("user", ()), *more)})


@functools.cache
def default_policy() -> Policy:
    """The rules that come with holdfast."""
    text = files("holdfast.safety").joinpath("default.toml").read_text(encoding="utf-8")
    return Policy({"default": read_rules(text, "default.toml")[0]})


def load_policy(home: str | None = None, environ: Mapping[str, str] | None = None) -> Policy:
    """The policy of an instance: the operator's file over the one in `home` over the defaults.

    Raises BadValue for a file that exists and is invalid: no rule is ignored.
    """
    operator_home = (os.environ if environ is None else environ).get("HOLDFAST_POLICY_DIR") or OPERATOR_DIRECTORY
    levels: dict[Level, tuple[Rule, ...]] = dict(default_policy().levels)
    if home:
        levels["default"] = tuple(_about_home(rule, home) for rule in levels["default"])
    strict: Level | None = None
    sandbox: SandboxProfile | None = None
    sources: tuple[tuple[Level, str | None], ...] = (("user", home), ("operator", operator_home))
    for level, directory in sources:
        if directory:
            text = _read_file(f"{directory}/policy.toml")
            levels[level] = read_rules(text, f"{directory}/policy.toml")[0]
            table = tomllib.loads(text)
            strict = level if table.get("profile") == "strict" else strict
            if "profile" in table:  # the operator's decides: a user can be stricter, never milder
                sandbox = _sandbox(table, level) if table["profile"] == "sandbox" else None
    return Policy(levels, strict, sandbox)


def _sandbox(table: Mapping[str, Any], level: Level) -> SandboxProfile:
    given = table.get("sandbox", {})
    writable = given.get("writable", [])
    listed = [writable] if isinstance(writable, str) else writable
    return SandboxProfile(level, given.get("network", "none"), tuple(map(os.path.expanduser, listed)))


def _check_sandbox(table: object, profile: object, path: str) -> None:
    if not isinstance(table, dict) or set(table) - {"network", "writable"}:
        raise _bad(path, "sandbox has to be a table of network and writable")
    if profile != "sandbox":
        raise _bad(path, 'sandbox without profile = "sandbox"')
    if table.get("network", "none") not in get_args(Network):
        raise _bad(path, f"sandbox.network has to be {' or '.join(get_args(Network))}")
    if "writable" in table:
        for text in _texts(table["writable"], "sandbox.writable", path):
            if not text.startswith(("/", "~")) or "\0" in text:
                raise _bad(path, f"sandbox.writable has to be absolute, not {text[:60]!r}")


def _about_home(rule: Rule, home: str) -> Rule:
    """The rules about holdfast's own files, with those of this instance: also specs and logs, of any session."""
    if rule.name != "own-files" or "*" not in rule.program:
        return rule
    top = HOMES.sub("~", os.path.abspath(home))
    return replace(rule, path=(*rule.path, top, f"{top}/**"))


def _read_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as broken:
        raise BadValue(f"cannot read {path}: {broken}", next=f"correct or remove {path}") from broken


def read_rules(text: str, path: str) -> tuple[tuple[Rule, ...], dict[str, tuple[str, ...]]]:
    """The rules of a policy file and its places; `path` is for error messages."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as broken:
        raise BadValue(f"cannot read {path}: {broken}", next=f"correct or remove {path}") from broken
    profile = table.pop("profile", PROFILES[0])
    if profile not in PROFILES:
        raise _bad(path, f"profile has to be {', '.join(PROFILES[:-1])} or {PROFILES[-1]}")
    if "sandbox" in table:
        _check_sandbox(table.pop("sandbox"), profile, path)
    places = _places(table.pop("places", {}), path)
    rules: list[Rule] = []
    for action in get_args(Action):
        entries = table.pop(action, [])
        if not isinstance(entries, list):
            raise _bad(path, f"{action} has to be written [[{action}]]")
        rules += [_rule(action, entry, places, path) for entry in entries]
    if table:
        raise _bad(path, f"unknown table {next(iter(table))!r}")
    return tuple(rules), places


def _bad(path: str, what: str) -> BadValue:
    return BadValue(f"{what} in {path}", next="see docs/safety.md")


def _places(table: object, path: str) -> dict[str, tuple[str, ...]]:
    shipped = {} if path == "default.toml" else _shipped_places()
    if not isinstance(table, dict):
        raise _bad(path, "places has to be a table")
    named = {f"@{name}": _texts(value, f"places.{name}", path) for name, value in table.items()}
    known = {**shipped, **named}
    return {name: _spelled_out(patterns, known, path) for name, patterns in known.items()}


@functools.cache
def _shipped_places() -> dict[str, tuple[str, ...]]:
    text = files("holdfast.safety").joinpath("default.toml").read_text(encoding="utf-8")
    return read_rules(text, "default.toml")[1]


def _spelled_out(patterns: tuple[str, ...], places: dict[str, tuple[str, ...]], path: str) -> tuple[str, ...]:
    found: list[str] = []
    for pattern in patterns:
        if not pattern.startswith("@"):
            found.append(pattern)
        elif pattern in places:
            found += places[pattern]
        else:
            raise _bad(path, f"unknown place {pattern!r}")
    return tuple(found)


def _texts(value: object, key: str, path: str) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not listed or not all(isinstance(item, str) and item for item in listed):
        raise _bad(path, f"{key} has to be a text or a list of texts")
    return tuple(listed)


def _rule(action: Action, entry: object, places: dict[str, tuple[str, ...]], path: str) -> Rule:
    if not isinstance(entry, dict):
        raise _bad(path, f"{action} has to be written [[{action}]]")
    values: dict[str, Any] = {}
    for key, value in entry.items():
        if key in _LISTS:
            values[key] = _texts(value, key, path)
        elif key in _TEXTS and isinstance(value, str):
            values[key] = value
        else:
            raise _bad(path, f"{key!r} cannot be {value!r}" if key in _TEXTS else f"unknown key {key!r}")
    _check(action, values, path)
    for key in ("path", "unless_path"):
        if key in values:
            values[key] = _spelled_out(values[key], places, path)
    name = values.pop("name", "") or f"{action} in {os.path.basename(path)}"
    return Rule(action, name, values.pop("why", "") or name, **values)


def _check(action: Action, values: dict[str, Any], path: str) -> None:
    if not set(values) - {"name", "why"}:
        raise _bad(path, f"a rule under [[{action}]] without conditions")
    import re2

    for pattern in (*values.get("arguments", ()), *values.get("without", ())):
        if pattern.startswith("re:"):
            try:
                compiled(pattern[3:])
            except re2.error as broken:
                raise _bad(path, f"pattern {pattern!r} is no valid expression") from broken
