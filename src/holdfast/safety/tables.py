"""The tables of programs.toml and asks.toml, read when first used, and the options of `holdfast run`."""

from __future__ import annotations

import fnmatch
import functools
import re
import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.ops.start import run_flags

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_CHANGES_NOTHING = ("--help", "--version", "--dry-run", "--dryrun", "--dry-run=*")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How a program runs a command line or a shell text; programs.toml explains the keys."""

    values: frozenset[str] = frozenset()
    skip: int | None = None
    after: dict[str, int] = field(default_factory=dict)
    typed: dict[str, int] = field(default_factory=dict)
    same: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    text: bool = False
    operands: bool = False
    appends: bool = False
    fed: bool = False
    shell: bool = False
    cwd: str = ""


@dataclass(frozen=True, slots=True)
class Language:
    """How an interpreter is given code."""

    inline: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    subcommand: str = ""
    reads: bool = True


@dataclass(frozen=True, slots=True)
class DatabaseClient:
    """How a database client is given statements."""

    options: frozenset[str] = frozenset()
    operand: int | None = None


@dataclass(frozen=True, slots=True)
class Asks:
    """Words of a program that ask."""

    kind: str
    always: bool
    """Whether every call asks."""
    words: tuple[tuple[re.Pattern[str], ...], ...]
    """Patterns of words that follow each other, with any words between."""
    without: re.Pattern[str]


def _wrapper(values: frozenset[str] = frozenset(), texts: frozenset[str] = frozenset(), **keys: Any) -> Wrapper:
    if values == {"@holdfast"}:
        values = frozenset(flag for flag, takes_word in run_flags().items() if takes_word)
    if not keys.keys() & {"after", "typed", "operands"} and not texts:
        keys.setdefault("skip", 0)
    return Wrapper(values | texts, texts=texts, **keys)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("holdfast.safety").joinpath(name).read_text(encoding="utf-8"))


_FILE = _read("programs.toml")
_SETS = ("values", "texts", "same", "inline", "options")


def _table(section: str, make: Callable[..., T]) -> dict[str, T]:
    """A table by program; a key of the file names one program or several."""
    return {
        name: made
        for key, keys in _FILE[section].items()
        for made in [make(**{key: frozenset(given.split()) if key in _SETS else given for key, given in keys.items()})]
        for name in key.split()
    }


WRAPPERS = _table("wrappers", _wrapper)
LANGUAGES = _table("languages", Language)
DATABASES = _table("databases", DatabaseClient)
VARIABLES: dict[str, str] = _FILE["variables"]
#: Regular expressions without blanks; the file breaks them into lines.
PATTERNS = {key: "".join(text.split()) for key, text in _FILE["patterns"].items()}
_NAMES = {key: frozenset(text.split()) for key, text in _FILE["names"].items()}
SHELLS = _NAMES["shells"]
FETCHERS = _NAMES["fetchers"]
DECODERS = _NAMES["decoders"]
SENDERS = _NAMES["senders"]
PLAIN = _NAMES["plain"]
KNOWN = (PLAIN | _NAMES["known"]) - _NAMES["worded"]
READS = _NAMES["reads"]
DELETES = _NAMES["deletes"]
ACTS = _NAMES["acts"]
MAKES = _NAMES["makes"]
SENTENCE = _NAMES["sentence"]
INPUT_RUNNERS = _NAMES["input_runners"]
DESTRUCTIVE = _NAMES["destructive"]
CARRIERS = _NAMES["carriers"]
REMOTE_SHELLS = _NAMES["remote_shells"]
TERMINALS = _NAMES["terminals"]
ENTERING = _NAMES["entering"]
CONSOLES = _NAMES["consoles"]
DEBUGGERS = _NAMES["debuggers"]
PAGERS = _NAMES["pagers"]


@functools.cache
def asks_of(program: str) -> tuple[Asks, ...]:
    """What asks of a program, by kind."""
    return tuple(_asks(kind, text) for kind, text in _ASKS.get(program, ()))


def _asks(kind: str, text: str) -> Asks:
    given = text.split()
    words = [word for word in given if not word.startswith("!")]
    unless = [*(word[1:] for word in given if word.startswith("!")), *_CHANGES_NOTHING]
    sequences = tuple(tuple(re.compile(fnmatch.translate(part)) for part in _parts(word)) for word in words)
    return Asks(kind, "*" in words, sequences, re.compile("|".join(map(fnmatch.translate, unless))))


def _parts(word: str) -> list[str]:
    """The words of a sequence; a `+` in front is part of the word."""
    return [word[:1] + part if place == 0 else part for place, part in enumerate(word[1:].split("+"))]


_ASKS: dict[str, list[tuple[str, str]]] = {}
for _kind, _entries in _read("asks.toml").items():
    for _key, _text in _entries.items():
        for _program in _key.split():
            _ASKS.setdefault(_program, []).append((_kind, _text))
#: Programs of asks.toml.
LISTED = frozenset(_ASKS)
