"""Words of a script, expanded as the shell would: quotes, escapes, variables, substitutions, braces.

A word has several outcomes if a variable may have several values; all of them are returned, up to a limit. Words are
read from the text; only the positions of substitutions are taken from the tree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from holdfast.safety.expansion import Parameters, expand_braces, unescaped
from holdfast.safety.marks import (
    HOME,
    QUOTED,
    SPLIT,
    UNKNOWN,
    active,
    letters,
    split_value,
    without_braces,
)
from holdfast.safety.state import Feed, JudgeState, Word
from holdfast.safety.syntax import MOST_TEXT

if TYPE_CHECKING:
    from tree_sitter import Node

    from holdfast.safety.syntax import Script

#: The most outcomes of one word.
MOST_OUTCOMES = 16
#: A longer word counts as unknown.
MOST_LETTERS = 2 * MOST_TEXT
_PLAIN = re.compile(r"""[^\\'"$`<>~]+""")
_BLANKS = re.compile(r"\s+")
_VARIABLE = re.compile(r"\$\{?(\w+)")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9]|[@*#?$!_-]")


class Substitutes(Protocol):
    """Reads `$(…)` and `<(…)`; implemented by the reader of scripts."""

    def substitute(self, script: Script, node: Node | None, text: str, state: JudgeState) -> Feed: ...

    def process_file(self, script: Script, node: Node | None, text: str, state: JudgeState) -> str: ...

    def find(self, finding: str, where: str, *words: str) -> None: ...


class Words:
    """Expands words of one script in one state."""

    def __init__(self, script: Script, state: JudgeState, runs: Substitutes) -> None:
        self.script = script
        self.text = script.text
        self.state = state
        self.runs = runs

    def expand(self, start: int, end: int) -> list[list[Word]]:
        """The possible outcomes of a word; each is the words that it becomes."""
        source = self.text[start:end]
        if self.state.origins and "$" in source:
            source = " ".join([source, *(self.state.origins.get(name, "") for name in _VARIABLE.findall(source))])
        return [_words(outcome, source) for outcome in self.scan(start, end, quoted=False)]

    def values(self, start: int, end: int) -> tuple[str, ...]:
        """The possible values of a text that is not split into words, such as an assigned value."""
        return tuple(dict.fromkeys(stored(outcome) for outcome in self.scan(start, end, quoted=False)))

    def scan(self, start: int, end: int, *, quoted: bool) -> list[str]:
        outcomes = [""]
        position = start
        while position < end:
            choices, position = self._piece(position, end, start, quoted)
            outcomes = [outcome + choice for outcome in outcomes for choice in choices][:MOST_OUTCOMES]
            if sum(map(len, outcomes)) > MOST_LETTERS:
                outcomes = [outcome if len(outcome) <= MOST_LETTERS else UNKNOWN for outcome in outcomes[:1]]
        return outcomes

    def _piece(self, position: int, end: int, start: int, quoted: bool) -> tuple[list[str], int]:
        if run := _PLAIN.match(self.text, position, end):
            # A word contains blanks if the grammar took two words for one.
            return [run[0] if quoted else _BLANKS.sub(SPLIT, active(run[0]))], run.end()
        letter = self.text[position]
        if letter == "\\":
            return self._backslash(position, quoted)
        if letter == "$":
            return self._dollar(position, end, quoted)
        if letter == "`":
            return self._substitution(position, end, quoted)
        if quoted:
            return [letter], position + 1
        if letter in "'\"":
            return self._quotes(position, end)
        if letter in "<>" and self.text.startswith("(", position + 1):
            return self._process(position, end)
        if letter == "~" and (position == start or self.text[position - 1] in "=:"):
            return [HOME], position + 1
        return [letter], position + 1

    def _backslash(self, position: int, quoted: bool) -> tuple[list[str], int]:
        letter = self.text[position + 1 : position + 2]
        if letter == "\n":
            return [""], position + 2
        if quoted and letter not in '$`"\\':
            return ["\\" + letter], position + 2
        return [letter or "\\"], position + 2

    def _quotes(self, position: int, end: int) -> tuple[list[str], int]:
        if self.text[position] == "'":
            close = self._find("'", position + 1, end)
            return [QUOTED + self.text[position + 1 : close]], close + 1
        close = self.closing_quote(position + 1, end)
        return [QUOTED + outcome for outcome in self.scan(position + 1, close, quoted=True)], close + 1

    def _find(self, letter: str, position: int, end: int) -> int:
        found = self.text.find(letter, position, end)
        return end if found < 0 else found

    def word_end(self, position: int) -> int:
        """The end of the word that begins here."""
        end = len(self.text)
        while position < end and self.text[position] not in " \t\n;|&()<>":
            position = self._skip(position, end)
        return min(position, end)

    def _skip(self, position: int, end: int, *, in_quotes: bool = False) -> int:
        """Behind the character, the escape, the quoted text or the expansion that begins here."""
        letter = self.text[position]
        if letter == "\\":
            return position + 2
        if letter == "`" or self.text.startswith(("$(", "${"), position):
            return self._end_of_expansion(position, end)
        if in_quotes:
            return position + 1
        if letter == "'":
            return self._find("'", position + 1, end) + 1
        if letter == '"':
            return self.closing_quote(position + 1, end) + 1
        return self._ansi(position + 2, end)[1] if self.text.startswith("$'", position) else position + 1

    def closing_quote(self, position: int, end: int) -> int:
        """The end of the double-quoted text that begins here."""
        while position < end and self.text[position] != '"':
            position = self._skip(position, end, in_quotes=True)
        return min(position, end)

    def _dollar(self, position: int, end: int, quoted: bool) -> tuple[list[str], int]:
        following = self.text[position + 1 : position + 2]
        if following == "'" and not quoted:
            return self._ansi(position + 2, end)
        if following == '"' and not quoted:
            return self._quotes(position + 1, end)
        if following == "(":
            return self._substitution(position, end, quoted)
        if following == "{":
            close = self._end_of_expansion(position, end) - 1
            found = Parameters(self, quoted).braced(position + 2, close)
            return [self.placed(value, quoted) for value in found][:MOST_OUTCOMES], close + 1
        if name := _NAME.match(self.text, position + 1, end):
            found = Parameters(self, quoted).named(name[0])
            return [self.placed(value, quoted) for value in found][:MOST_OUTCOMES], name.end()
        return ["$"], position + 1

    def placed(self, value: str, quoted: bool) -> str:
        """A value where it stands in a word."""
        if quoted:
            return value
        separators = "".join(self.state.values.get("IFS", ("",)))
        return split_value(value, separators)

    def _ansi(self, position: int, end: int) -> tuple[list[str], int]:
        close = position
        while close < end and self.text[close] != "'":
            close += 2 if self.text[close] == "\\" else 1
        return [QUOTED + unescaped(self.text[position:close])], min(close, end) + 1

    def _substitution(self, position: int, end: int, quoted: bool) -> tuple[list[str], int]:
        close = self._end_of_expansion(position, end)
        if self.text.startswith("$((", position):
            self.scan(position + 3, max(close - 2, position + 3), quoted=True)
            return [UNKNOWN], close
        node = self.script.substitutions.get(position)
        feed = self.runs.substitute(self.script, node, self._inner(position, close), self.state)
        if feed.text is None:
            # Rules about kill need to know whose process ids these are.
            return [UNKNOWN + "holdfast" if "holdfast" in feed.source else UNKNOWN], close
        return [self.placed(feed.text.rstrip("\n"), quoted)], close

    def _inner(self, position: int, close: int) -> str:
        if self.text[position] == "`":
            return re.sub(r"\\([$`\\])", r"\1", self.text[position + 1 : close - 1])
        return self.text[position + 2 : close - 1]

    def _process(self, position: int, end: int) -> tuple[list[str], int]:
        close = self._end_of_expansion(position, end)
        node = self.script.substitutions.get(position)
        return [self.runs.process_file(self.script, node, self._inner(position, close), self.state)], close

    def _end_of_expansion(self, position: int, end: int) -> int:
        """Behind a `$(…)`, `${…}`, `<(…)` or backticks: where the grammar says, else where the brackets close."""
        if (node := self.script.substitutions.get(position)) and node.end_byte <= end:
            return node.end_byte
        if self.text[position] == "`":
            position += 1
            while position < end and self.text[position] != "`":
                position += 2 if self.text[position] == "\\" else 1
            return min(position + 1, end)
        return self._closing_bracket(position + 2, end)

    def _closing_bracket(self, position: int, end: int) -> int:
        opening, closing = ("{", "}") if self.text[position - 1] == "{" else ("(", ")")
        depth = 1
        while position < end and depth:
            depth += (self.text[position] == opening) - (self.text[position] == closing)
            position = self._skip(position, end)
        return min(position, end)


def stored(marked: str) -> str:
    """A value as a variable keeps it: letters, the unknown, and the home directory."""
    return letters(marked.replace(HOME, "\ue00f")).replace("\ue00f", HOME).replace(SPLIT, " ")


def _words(outcome: str, source: str) -> list[Word]:
    return [
        Word(without_braces(piece), source)
        for spelled in expand_braces(outcome)
        for piece in spelled.split(SPLIT)
        if piece
    ]
