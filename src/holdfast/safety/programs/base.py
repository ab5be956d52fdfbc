"""What every program that is looked into has in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.safety.marks import HOME, UNKNOWN, letters
from holdfast.safety.places import resolve
from holdfast.safety.state import NOTHING, Feed, State, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.safety.reader import Reader

    Handler = Callable[["Run"], "Feed | None"]


def names(text: str) -> tuple[str, ...]:
    """A list of names, written as one text."""
    return tuple(text.split())


#: Programs that bring bytes from elsewhere.
FETCHERS = frozenset(
    names(
        "curl wget nc ncat netcat socat ssh scp sftp rsync ftp tftp aria2c http https xh fetch lynx w3m links telnet "
        "openssl aws gsutil gcloud az rclone git svn"
    )
)
#: How a part of a text that is not known is written when the text is read as a script.
_UNKNOWN_TEXT = "${_holdfast_unknown_}"


@dataclass(frozen=True)
class Run:
    """One call, about to be looked into."""

    reader: Reader
    name: str
    arguments: tuple[Word, ...]
    state: State
    stdin: Feed | None
    where: str

    def unknown(self) -> Feed:
        """What it writes, when nothing more is known than who had a hand in it."""
        before = self.stdin.programs if self.stdin else ()
        source = f"{self.stdin.source} | {self.where}" if self.stdin and self.stdin.source else self.where
        return Feed(None, source[:2000], (self.name, *before)[:32])

    def perform(self, words: Iterable[Word], stdin: Feed | None = None) -> Feed:
        """Go on with another command line."""
        return self.reader.perform(self.reader, list(words), self.state, stdin or self.stdin, self.where)

    def script(self, text: str, arguments: tuple[str, ...] | None = None, stdin: Feed | None = None) -> Feed:
        """Go on with a text that some shell will read."""
        state = self.state.copy()
        if arguments is not None:
            state.arguments = arguments
        return self.reader.read(as_text(text), state, stdin or self.stdin)

    def here(self, text: str) -> Feed:
        """Go on with a text that this very shell will read: what it sets stays set."""
        return self.reader.read(as_text(text), self.state, self.stdin)

    def held(self, word: Word) -> Feed | None:
        """What a file holds, when the script itself put it there."""
        if word.text in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
            return self.stdin
        return self.state.files.get(resolve(word.marked, self.state.cwd))

    def find(self, finding: str, *words: str) -> None:
        self.reader.find(finding, self.where, *words, cwd=self.state.cwd)

    def option(self, *names: str) -> Word | None:
        """The value of an option: `-c x`, `-cx` for one letter, `--command x`, `--command=x`."""
        for place, word in enumerate(self.arguments):
            text = word.marked
            for name in names:
                if text == name:
                    return self.arguments[place + 1] if place + 1 < len(self.arguments) else None
                if name.startswith("--") and text.startswith(name + "="):
                    return Word(text[len(name) + 1 :], word.source)
                if len(name) == 2 and text.startswith(name) and not text.startswith("--"):
                    return Word(text[2:], word.source)
        return None

    def has(self, *names: str) -> bool:
        return any(word.text in names for word in self.arguments)

    def after(self, count: int) -> Run:
        return replace(self, arguments=self.arguments[count:])

    def operands(self, with_value: Iterable[str] = ()) -> list[Word]:
        """The arguments that are no options; options may stand between them."""
        found: list[Word] = []
        rest = list(self.arguments)
        takes = set(with_value)
        while rest:
            word = rest.pop(0)
            if word.text == "--":
                return found + rest
            if not word.text.startswith("-") or word.text == "-":
                found.append(word)
            elif takes_next(word.text, takes) and rest:
                rest.pop(0)
        return found

    def command_line(self, with_value: Iterable[str] = (), skip: int = 0) -> list[Word]:
        """What stands behind the options of a program that runs another one."""
        rest = list(self.arguments)
        takes = set(with_value)
        while rest and rest[0].text.startswith("-") and rest[0].text != "-":
            option = rest.pop(0).text
            if option == "--":
                break
            if takes_next(option, takes) and rest:
                rest.pop(0)
        return rest[skip:]


def takes_next(option: str, takes: set[str]) -> bool:
    """Whether the word behind an option is its value: `-u x`, and `-dmS x` where the last letter takes one."""
    if option in takes or option.startswith("--"):
        return option in takes
    first = next((place for place, letter in enumerate(option[1:], 1) if f"-{letter}" in takes), None)
    return first is not None and first == len(option) - 1


def as_text(marked: str) -> str:
    """Marked text as letters that can be read as a script again."""
    return letters(marked.replace(HOME, "/root")).replace(UNKNOWN, _UNKNOWN_TEXT)


def joined(words: Iterable[Word]) -> str:
    return " ".join(word.marked for word in words)


def nothing(_: Run) -> Feed:
    return NOTHING
