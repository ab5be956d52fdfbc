"""The state of a script while it is read (variables, functions, files, directory), and its calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holdfast.safety.marks import HOME, UNKNOWN, has_glob, letters, shown
from holdfast.safety.tables import VARIABLES

if TYPE_CHECKING:
    from tree_sitter import Node

    from holdfast.safety.syntax import Script


@dataclass(frozen=True, slots=True)
class Word:
    """One argument, expanded."""

    marked: str
    source: str = ""
    """How it was written."""

    @property
    def text(self) -> str:
        """Its letters; unknown parts are still marked."""
        return letters(self.marked)

    @property
    def known(self) -> bool:
        """Whether no part depends on the run time; a glob does."""
        return UNKNOWN not in self.marked and not has_glob(self.marked)


@dataclass(frozen=True, slots=True)
class SimulatedCall:
    """A program with its arguments, a finding (with `@` in front), or a redirection (`>`, `<`)."""

    program: str
    arguments: tuple[Word, ...] = ()
    where: str = ""
    cwd: str = "."

    def __str__(self) -> str:
        return self.where or " ".join([self.program, *(shown(word.marked) for word in self.arguments)])


@dataclass(frozen=True, slots=True)
class Feed:
    """The output or input of a command: a known text, or what is known about an unknown one."""

    text: str | None = None
    source: str = ""
    """The part of the script that makes it."""
    programs: tuple[str, ...] = ()
    """The programs that made it."""
    paths: tuple[str, ...] = ()
    """Names of files that it lists, as far as they are known."""

    def joined(self, other: Feed) -> Feed:
        text = None if self.text is None or other.text is None else self.text + other.text
        return Feed(
            text, self.source or other.source, (*self.programs, *other.programs)[:32], (*self.paths, *other.paths)[:32]
        )


NOTHING = Feed("")
#: Stands among the programs of a feed that was a literal text and was decoded: it cannot be judged.
DECODED = "@decoded"
#: A longer value of a variable counts as unknown.
MOST_VALUE = 8192
MOST_UNKNOWN = 32


def first_values() -> dict[str, tuple[str, ...]]:
    """The variables that are known before a script begins."""
    known: dict[str, tuple[str, ...]] = {name: (value,) for name, value in VARIABLES.items()}
    return known | {
        "HOME": (HOME,),
        "HOLDFAST_HOME": (f"{HOME}/.local/state/holdfast",),
        "XDG_CONFIG_HOME": (f"{HOME}/.config",),
        "XDG_DATA_HOME": (f"{HOME}/.local/share",),
        "XDG_STATE_HOME": (f"{HOME}/.local/state",),
        "XDG_CACHE_HOME": (f"{HOME}/.cache",),
        "XDG_RUNTIME_DIR": ("/run/user/1000",),
        "IFS": (" \t\n",),
        "TMPDIR": ("/tmp/tmp.dir",),
        "0": ("@self",),
    }


@dataclass
class JudgeState:
    """Copied for each subshell; `functions`, `files` and `called` are shared by all of a script."""

    cwd: str = "."
    values: dict[str, tuple[str, ...]] = field(default_factory=first_values)
    arrays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    arguments: tuple[str, ...] | None = None
    """`$1` and so on; None where they are not known."""
    aliases: dict[str, str] = field(default_factory=dict)
    functions: dict[str, tuple[Script, Node]] = field(default_factory=dict)
    files: dict[str, Feed] = field(default_factory=dict)
    """The content of files that the script wrote itself."""
    origins: dict[str, str] = field(default_factory=dict)
    """The source of unknown values, by variable."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Old names of files that the script moved or linked, by new name."""
    called: set[str] = field(default_factory=set)
    branches: int = 0
    """The number of enclosing conditions and loops: a variable set there may keep its old value."""

    def copy(self) -> JudgeState:
        return replace(self, values=dict(self.values), arrays=dict(self.arrays), aliases=dict(self.aliases))

    def set(self, name: str, values: tuple[str, ...]) -> None:
        """Give a variable its possible values; inside a branch it may keep those it had."""
        values = tuple(
            value if len(value) <= MOST_VALUE and value.count(UNKNOWN) <= MOST_UNKNOWN else UNKNOWN for value in values
        )
        if self.branches and (before := self.values.get(name)):
            values = tuple(dict.fromkeys((*values, *before)))
        self.values[name] = values[:16] or ("",)
        self.arrays.pop(name, None)
