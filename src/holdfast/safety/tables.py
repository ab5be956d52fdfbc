"""The tables of programs.toml, read when the first command is judged, and the options of `holdfast run`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.ops.start import run_flags

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


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


def _wrapper(values: frozenset[str] = frozenset(), texts: frozenset[str] = frozenset(), **keys: Any) -> Wrapper:
    if values == {"@holdfast"}:
        values = frozenset(flag for flag, takes_word in run_flags().items() if takes_word)
    if not keys.keys() & {"after", "typed", "operands"} and not texts:
        keys.setdefault("skip", 0)
    return Wrapper(values | texts, texts=texts, **keys)


_FILE = tomllib.loads(files("holdfast.safety").joinpath("programs.toml").read_text(encoding="utf-8"))
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
SENTENCE = _NAMES["sentence"]
INPUT_RUNNERS = _NAMES["input_runners"]
DESTRUCTIVE = _NAMES["destructive"]
CARRIERS = _NAMES["carriers"]
REMOTE_SHELLS = _NAMES["remote_shells"]
TERMINALS = _NAMES["terminals"]
ENTERING = _NAMES["entering"]
CONSOLES = _NAMES["consoles"]
PAGERS = _NAMES["pagers"]
