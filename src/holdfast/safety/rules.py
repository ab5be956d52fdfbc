"""Verdicts, and rules: one table of a policy file, and whether it matches a call."""

from __future__ import annotations

import fnmatch
import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from holdfast.safety.marks import HOME, UNKNOWN, shown
from holdfast.safety.places import may_be_in, resolve, surely_in

if TYPE_CHECKING:
    from holdfast.safety.state import SimulatedCall, Word

Action = Literal["allow", "ask", "deny"]
Level = Literal["operator", "user", "default"]
_RANK: dict[Action, int] = {"allow": 0, "ask": 1, "deny": 2}
#: The first operand of these is no path.
_MODE_FIRST = ("chmod", "chown", "chgrp")
#: Operands of these may be `host:path`.
_WITH_HOST = ("scp", "rsync", "socat")
_MODE = re.compile(r"-[rwxXst]+|--reference.*")
_BUNDLE = re.compile(r"-[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a command may run: at once, after an approval, or not at all."""

    action: Action
    rule: str | None = None
    """The name of the rule that decided; None if no rule matched."""
    why: str = ""
    """One sentence for users and models."""
    where: str = ""
    """The part of the text that it is about."""
    level: Level = "default"
    """The policy file that the rule is from."""
    word: str = field(default="", compare=False)
    """The argument that a condition of the rule matched."""

    @property
    def rank(self) -> int:
        return _RANK[self.action]


ALLOWED = Verdict("allow")


def worse(one: Verdict, other: Verdict) -> Verdict:
    """The stricter of two; the first of two equals."""
    return other if other.rank > one.rank else one


@dataclass(frozen=True, slots=True)
class Rule:
    """One table of a policy file. It matches if all of its conditions do."""

    action: Action
    name: str
    why: str
    program: tuple[str, ...] = ("*",)
    """Names or globs, one of which matches; a `!` in front excludes a program."""
    subcommand: tuple[str, ...] = ()
    """Words behind the options, one of which matches: `push`, `system prune`."""
    arguments: tuple[str, ...] = ()
    """Patterns, each of which matches some argument."""
    without: tuple[str, ...] = ()
    """Patterns that match no argument."""
    path: tuple[str, ...] = ()
    """Places, in one of which some path of the call is."""
    unless_path: tuple[str, ...] = ()
    """Places: some path of the call is not certainly in one of them."""
    at: str = ""
    """The arguments that are paths: all, `last`, or those with this prefix (`of=`)."""
    command: str = ""
    """The exact command text."""

    def fits(self, call: SimulatedCall, start: str) -> bool:
        """Whether the conditions beside the program match a call in a text that is judged in a directory."""
        return (
            (not self.subcommand or _subcommand_fits(call.arguments, self.subcommand))
            and all(any_fits(pattern, call.arguments) for pattern in self.arguments)
            and not any(any_fits(pattern, call.arguments) for pattern in self.without)
            and self._paths_fit(call, start)
        )

    def word(self, call: SimulatedCall, start: str) -> str:
        """The argument that decided, for an explanation."""
        if call.program.startswith("@"):
            return shown(call.arguments[-1].marked) if call.arguments else ""
        for text in paths_of(call, self.at):
            path = resolve(text, call.cwd)
            outside = self.unless_path and not surely_in(path, self.unless_path, start)
            if may_be_in(path, self.path, start) if self.path else outside:
                return shown(text)
        for word in call.arguments:
            if any(any_fits(pattern, (word,)) for pattern in self.arguments):
                return shown(word.marked)
        return call.program

    def _paths_fit(self, call: SimulatedCall, start: str) -> bool:
        if not self.path and not self.unless_path:
            return True
        paths = [resolve(path, call.cwd) for path in paths_of(call, self.at)]
        if self.path and not any(may_be_in(path, self.path, start) for path in paths):
            return False
        return not self.unless_path or any(not surely_in(path, self.unless_path, start) for path in paths)


def program_fits(program: str, patterns: tuple[str, ...]) -> bool:
    positive = [pattern for pattern in patterns if not pattern.startswith("!")]
    if any(
        pattern[1:] == program or fnmatch.fnmatchcase(program, pattern[1:]) for pattern in patterns if pattern[0] == "!"
    ):
        return False
    special = program.startswith("@") or program in ("<", ">")
    return any(
        pattern == program or (fnmatch.fnmatchcase(program, pattern) and (not special or pattern[0] in "@*"))
        for pattern in positive or ["*"]
    )


def _subcommand_fits(arguments: tuple[Word, ...], choices: tuple[str, ...]) -> bool:
    """Whether the words of a subcommand follow the options; a word behind an option may be its value."""
    texts = [word.text for word in arguments[:64]]
    return any(_follows(texts, choice.split()) for choice in choices)


def _follows(texts: list[str], words: list[str]) -> bool:
    """Whether the words follow each other, with only options and their values between them."""
    if not words:
        return True
    for place, text in enumerate(texts):
        if text.startswith("-"):
            continue
        if fnmatch.fnmatchcase(text, words[0]) and _follows(texts[place + 1 :], words[1:]):
            return True
        if place == 0 or not texts[place - 1].startswith("-"):
            return False
    return False


def any_fits(pattern: str, arguments: tuple[Word, ...]) -> bool:
    """Whether some argument matches a pattern: an option, a glob, or with `re:` a regular expression."""
    if pattern.startswith("re:"):
        expression = compiled(pattern[3:])
        return any(expression.search(_searched(word)) for word in arguments)
    options = True
    for word in arguments:
        if any(_fits(choice, word, options) for choice in pattern.split("|")):
            return True
        options = options and word.text != "--"
    return False


@functools.lru_cache(maxsize=1024)
def compiled(expression: str) -> re.Pattern[str]:
    import re2

    options = re2.Options()
    options.log_errors = False
    found: re.Pattern[str] = re2.compile(expression, options)
    return found


def _searched(word: Word) -> str:
    text = word.text if UNKNOWN not in word.marked else f"{word.text}\n{word.source}"
    return shown(text)[:65536]


def _fits(choice: str, word: Word, options: bool) -> bool:
    text = word.text
    if choice.startswith("--"):
        name = text.partition("=")[0]
        if choice.endswith("*"):
            return options and fnmatch.fnmatchcase(text, choice)
        return options and (name == choice or (len(name) > 4 and name.startswith("--") and choice.startswith(name)))
    if choice.startswith("-") and len(choice) == 2:
        return options and not text.startswith("--") and bool(_BUNDLE.fullmatch(text)) and choice[1] in text
    if choice.startswith("-"):
        return options and fnmatch.fnmatchcase(text, choice)
    return text == choice or fnmatch.fnmatchcase(text, choice)


def paths_of(call: SimulatedCall, at: str) -> list[str]:
    """The arguments that may be paths."""
    words = [word.marked for word in call.arguments]
    if at == "last":
        target = _target_option(words) if call.program in ("cp", "mv", "ln", "install") else None
        words = [target] if target else [word for word in words if not word.startswith("-")][-1:]
    elif at:
        return [word[len(at) :] for word in words if word.startswith(at)]
    if call.program in _MODE_FIRST:
        words = _without_mode(words)
    found = [path for word in words for path in paths_in(word)]
    return found + [path for word in words for path in _behind_host(word)] if call.program in _WITH_HOST else found


def _without_mode(words: list[str]) -> list[str]:
    """The words without the mode or the owner in front of the paths; a mode may also be an option such as `-x`."""
    place = next((place for place, word in enumerate(words) if not word.startswith("-")), None)
    given = any(_MODE.fullmatch(word) for word in words)
    return words if place is None or given else words[:place] + words[place + 1 :]


def _behind_host(word: str) -> list[str]:
    """The path in `host:path`, relative to the home directory."""
    _, colon, path = word.partition(":")
    if not colon or path.startswith("//"):
        return []
    return [path if path.startswith(("/", HOME)) else f"{HOME}/{path.removeprefix('~/')}"]


def _target_option(words: list[str]) -> str | None:
    for place, word in enumerate(words):
        if word == "-t" and place + 1 < len(words):
            return words[place + 1]
        if word.startswith("--target-directory="):
            return word.partition("=")[2]
    return None


def paths_in(word: str) -> list[str]:
    """The parts of one argument that may be a path: all of it, or the part behind `=` or `@`."""
    found = [] if word.startswith("-") else [word]
    if "=" in word:
        found.append(word.partition("=")[2].removeprefix("@"))
    if word.startswith("@"):
        found.append(word[1:])
    if word.startswith("-"):
        places = [place for place in (word.find("/"), word.find(HOME)) if place > 0]
        found += [word[min(places) :]] if places else []
    return [path for path in found if path]
