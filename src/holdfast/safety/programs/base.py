"""One call of a program, with what its handlers need: options, operands, and reading further text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.safety.marks import HOME, UNKNOWN, UNKNOWN_TEXT, letters
from holdfast.safety.places import resolve
from holdfast.safety.state import DECODED, Feed, JudgeState, Word
from holdfast.safety.tables import DECODERS, DESTRUCTIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from holdfast.safety.reader import Reader

    Handler = Callable[["Run"], "Feed | None"]

_STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


@dataclass(frozen=True)
class Run:
    """A program with its arguments, its standard input and the state of its shell."""

    reader: Reader
    name: str
    arguments: tuple[Word, ...]
    state: JudgeState
    stdin: Feed | None
    where: str

    def unknown(self) -> Feed:
        """Output of which only the programs that made it are known."""
        before = self.stdin.programs if self.stdin else ()
        source = f"{self.stdin.source} | {self.where}" if self.stdin and self.stdin.source else self.where
        hides = self.name in DECODERS and self.stdin is not None and bool(self.stdin.text)
        return Feed(None, source[:2000], (*((DECODED,) if hides else ()), self.name, *before)[:32])

    def perform(self, words: Iterable[Word], stdin: Feed | None = None) -> Feed:
        """Judge another command line."""
        return self.reader.perform(self.reader, list(words), self.state, stdin or self.stdin, self.where)

    def script(self, text: str, arguments: tuple[str, ...] | None = None, stdin: Feed | None = None) -> Feed:
        """Judge a text that another shell reads."""
        state = self.state.copy()
        if arguments is not None:
            state.arguments = arguments
        return self.reader.read(as_text(text), state, stdin or self.stdin)

    def here(self, text: str) -> Feed:
        """Judge a text that this shell reads: what it sets stays set."""
        return self.reader.read(as_text(text), self.state, self.stdin)

    def held(self, word: Word) -> Feed | None:
        """The content of a file that the script itself wrote, or of the standard input."""
        if word.text in _STANDARD_INPUT:
            return self.stdin
        return self.state.files.get(resolve(word.marked, self.state.cwd))

    def find(self, finding: str, *words: str) -> None:
        self.reader.find(finding, self.where, *words, cwd=self.state.cwd)

    def option(self, *names: str) -> Word | None:
        """The value of an option: `-c x`, `-cx` for one letter, `--command x`, `--command=x`."""
        return next(iter(self.option_values(names)), None)

    def option_values(self, names: Collection[str]) -> list[Word]:
        """All values of these options."""
        found: list[Word] = []
        for place, word in enumerate(self.arguments):
            for name in names if word.marked[:1] in ("-", "+") else ():
                if word.marked == name:
                    found += self.arguments[place + 1 : place + 2]
                elif name.startswith("--") and word.marked.startswith(name + "="):
                    found.append(Word(word.marked[len(name) + 1 :], word.source))
                elif len(name) == 2 and word.marked.startswith(name) and name != "--":
                    found.append(Word(word.marked[2:], word.source))
        return found

    def has(self, *names: str) -> bool:
        return any(word.text in names for word in self.arguments)

    def after(self, count: int) -> Run:
        return replace(self, arguments=self.arguments[count:])

    def operands(self, with_value: Collection[str] = ()) -> list[Word]:
        """The arguments that are no options; options may stand between them."""
        found: list[Word] = []
        rest = list(self.arguments)
        while rest:
            word = rest.pop(0)
            if word.text == "--":
                return found + rest
            if not word.text.startswith("-") or word.text == "-":
                found.append(word)
            elif takes_next(word.text, with_value) and rest:
                rest.pop(0)
        return found

    def command_line(self, with_value: Collection[str] = (), skip: int = 0) -> list[Word]:
        """The words behind the options, and behind `skip` operands, of a program that runs another one.

        A destructive program is neither skipped nor taken for the value of an option: the tables may be wrong.
        """
        rest = list(self.arguments)
        while rest and rest[0].text not in DESTRUCTIVE:
            text = rest.pop(0).text
            if text == "--":
                destructive = bool(rest) and rest[0].text in DESTRUCTIVE
                return rest if destructive else rest[skip:]
            if text.startswith("-") and text != "-":
                if takes_next(text, with_value) and rest and rest[0].text not in DESTRUCTIVE:
                    rest.pop(0)
            elif skip > 0:
                skip -= 1
            else:
                return list(self.arguments[-len(rest) - 1 :])
        return rest


def takes_next(option: str, takes: Collection[str]) -> bool:
    """Whether the word behind an option is its value: `-u x`, and `-dmS x` where the last letter takes one."""
    if option in takes or option.startswith("--"):
        return option in takes
    first = next((place for place, letter in enumerate(option[1:], 1) if f"-{letter}" in takes), None)
    return first is not None and first == len(option) - 1


def as_text(marked: str) -> str:
    """Marked text as letters that can be read as a script again."""
    return letters(marked.replace(HOME, "/root")).replace(UNKNOWN, UNKNOWN_TEXT)


def joined(words: Iterable[Word]) -> str:
    return " ".join(word.marked for word in words)
