"""`holdfast --complete WORDS…`: candidates for the last word. For the scripts of `holdfast completion`.

The first line is `words` (then one candidate per line, with a description after a tab), `files`, `directories`, or
`command N` (after N words another command begins). It prints no errors and never starts a daemon.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys

from holdfast.cli import console
from holdfast.cli.options import load, resolved
from holdfast.cli.verbs import ALIASES, VERBS
from holdfast.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.cli.options import Option, Verb

    Candidates = Iterable[tuple[str, str]]

#: Seconds that a completion may take.
_TIME_LIMIT = 2.0
_LONGEST = 60
#: Verbs that take either IDs or --all.
_OF_IDS_OR_ALL = ("kill", "rm")
#: In a synopsis: any number of words.
_AGAIN = "…"


def run(words: Sequence[str]) -> int:
    _signal.signal(_signal.SIGALRM, lambda *_: os._exit(0))
    _signal.setitimer(_signal.ITIMER_REAL, _TIME_LIMIT)
    try:
        lines = _answer(list(words) or [""])
    except (HoldfastError, OSError):
        return 0
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _answer(words: list[str]) -> list[str]:
    *before, current = words
    if not before:
        options = [("--help", "Show all verbs"), ("--version", "Show the version")]
        return _words(current, [*VERBS.items(), *_aliases(), *options])
    if before[0] in ("help", "-h", "--help"):
        return _words(current, [*VERBS.items(), *_aliases()])
    verb, *given = resolved(before)
    if verb not in VERBS:
        return []
    skipped = len(given) - len(before) + 1
    return _Reader(load(verb), skipped).answer(given, current)


def _aliases() -> list[tuple[str, str]]:
    return [(alias, f"The same as {' '.join(words)}") for alias, words in ALIASES.items()]


def _words(current: str, candidates: Candidates, prefix: str = "") -> list[str]:
    fitting = {value: about for value, about in candidates if value.startswith(current)}
    return ["words", *(f"{prefix}{value}\t{_shortened(about)}" for value, about in fitting.items())]


def _shortened(about: str) -> str:
    text = console.visible(about)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class _Reader:
    """Reads the words of one verb up to the one to complete."""

    def __init__(self, verb: Verb, skipped: int = 0) -> None:
        """`skipped`: the number of words that an alias stands for and the user did not type."""
        self._verb = verb
        self._skipped = skipped
        self._positional: list[str] = []
        self._given: set[str] = set()
        self._quoted = False

    def answer(self, before: list[str], current: str) -> list[str]:
        expected: Option | None = None
        for at, word in enumerate(before):
            if expected is not None:
                expected = None
            elif self._is_option(word):
                expected = self._take_option(word)
            else:
                if word == "--" and not self._quoted:
                    self._quoted = True
                    continue
                self._positional.append(word)
                if 0 < self._verb.greedy <= len(self._positional):
                    return [f"command {at + 1 - self._skipped}"]
        if expected is not None:
            return self._value(expected, current)
        if self._is_option(current) or (current in ("-", "--") and not self._quoted):
            return self._option(current)
        if self._verb.greedy == len(self._positional) + 1:
            return [f"command {len(before) + 1 - self._skipped}"]
        return self._position(current)

    def _is_option(self, word: str) -> bool:
        return word.startswith("-") and len(word) > 1 and word != "--" and not self._quoted

    def _take_option(self, word: str) -> Option | None:
        """The option, if the next word is its value."""
        if word.startswith("--"):
            name, equals, _ = word.partition("=")
            option = self._find(name)
            lacks_value = option is not None and option.metavar is not None and option.implies is None
            return option if lacks_value and not equals else None
        for at, letter in enumerate(word[1:], start=2):
            option = self._find(f"-{letter}")
            if option is None or option.metavar is not None:
                return option if len(word) == at else None
        return None

    def _find(self, name: str) -> Option | None:
        option = next((option for option in self._verb.options if name in option.names), None)
        if option is not None and not option.repeat:
            self._given.add(option.key)
        return option

    def _option(self, current: str) -> list[str]:
        name, equals, value = current.partition("=")
        if equals:
            option = next((option for option in self._verb.options if name in option.names), None)
            return [] if option is None or option.metavar is None else self._value(option, value, f"{name}=")
        left = [option for option in self._verb.options if option.key not in self._given]
        return _words(current, [(option.names[-1], option.help) for option in left])

    def _value(self, option: Option, current: str, prefix: str = "") -> list[str]:
        from holdfast.cli.help import candidates

        if option.choices:
            return _words(current, [(choice, "") for choice in option.choices], prefix)
        found = candidates.of_option(option, self._verb.name)
        return [found] if isinstance(found, str) else _words(current, found, prefix)

    def _position(self, current: str) -> list[str]:
        from holdfast.cli.help import candidates

        if "all" in self._given and self._verb.name in _OF_IDS_OR_ALL:
            return ["words"]
        slots = slots_at(self._verb, self._positional)
        found: list[tuple[str, str]] = [(slot, "") for slot in slots if is_literal(slot)]
        for slot in slots:
            more = [] if is_literal(slot) else candidates.of_slot(slot, self._verb.name, current)
            if isinstance(more, str):
                return [more]
            found += more
        return _words(current, [(value, about) for value, about in found if value not in self._positional])


def slots_at(verb: Verb, before: Sequence[str]) -> list[str]:
    """What may follow the words `before`: literal words in lower case, or slots such as ID."""
    found: list[str] = []
    for line in verb.synopsis:
        for slot in _at(_positions(line), before):
            if slot not in found:
                found.append(slot)
    return found


def is_literal(slot: str) -> bool:
    return slot == slot.lower()


def _at(positions: list[list[str]], before: Sequence[str]) -> list[str]:
    if positions and positions[-1][0].endswith(_AGAIN) and len(before) >= len(positions):
        return [positions[-1][0].removesuffix(_AGAIN)]
    if len(before) >= len(positions):
        return []
    for word, slots in zip(before, positions, strict=False):
        if all(map(is_literal, slots)) and word not in slots:
            return []
    return [slot.removesuffix(_AGAIN) for slot in positions[len(before)]]


def _positions(line: str) -> list[list[str]]:
    """`send ID [TEXT] [--eof]` -> [["ID"], ["TEXT"]]; `daemon start|stop` -> [["start", "stop"]]."""
    positions: list[list[str]] = []
    for token in _without_options(line).split()[1:]:
        bare = token.strip("[]")
        if bare.startswith("-"):  # from here on the line is about options
            break
        positions.append(bare.split("|"))
    return positions


def _without_options(line: str) -> str:
    """Without the groups in brackets that begin with a dash, with everything nested in them."""
    kept: list[str] = []
    depth = 0
    for at, character in enumerate(line):
        if character == "[" and (depth or line[at + 1 : at + 2] == "-"):
            depth += 1
        elif character == "]" and depth:
            depth -= 1
        elif not depth:
            kept.append(character)
    return "".join(kept)
