"""What the words of programs say that they do.

For programs of asks.toml the file says which words ask: they are reported as `@asks`, with the kind. Of programs that
the policy does not know, a word that deletes, acts on another machine or is code is reported as `@risky`, with its
kind. The words are data in programs.toml. Files that options name for output are reported as `>`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from holdfast.safety.marks import HOME
from holdfast.safety.state import SimulatedCall, Word
from holdfast.safety.tables import ACTS, DELETES, KNOWN, MAKES, PATTERNS, READS, WRAPPERS, asks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.safety.programs.base import Run

#: So many words of a program are looked at.
_MOST_WORDS = 32
#: So many words of a program of the table are looked at.
_MOST_LISTED = 64
#: So many words may stand in front of the one that says what is done.
_MOST_NOUNS = 5
_SUBCOMMAND = re.compile(r"[A-Za-z][\w:.-]*")
_FILE_NAME = re.compile(r".*\.(?!\w*(?:drop|delete|reset)\b)[a-z]\w{0,4}")
_PARTS = re.compile(r"[A-Z]?[a-z\d]+|[A-Z]+(?![a-z])")
_PROSE = re.compile(PATTERNS["prose_options"])
_NO_CHANGE = re.compile(PATTERNS["no_change"])
_RISKY = re.compile(PATTERNS["risky_options"])
_CONSENT = re.compile(PATTERNS["consent_options"])
_CODE_OPTION = re.compile(PATTERNS["code_options"])
_CODE = re.compile(PATTERNS["code_text"], re.DOTALL)
_ACCOUNT = re.compile(PATTERNS["account"])
_VERB_FIRST = re.compile(PATTERNS["verb_first"])
_VERB_IN_NAME = re.compile(r"(?:^|[-_.])(?:delete|destroy|erase|nuke|purge|remove|uninstall|wipe)(?:[-_.]|$)")
_STATEMENT = re.compile(PATTERNS["statement"], re.DOTALL)
_OUTPUT = re.compile(PATTERNS["output_options"])
_METHOD = re.compile(r"(?:-X|--(?:request|method)=?)?(?:POST|PUT|PATCH|DELETE|PURGE)")
_ADDRESS = re.compile(r"(?:https?|wss?)://(?!localhost|127\.|0\.0\.0\.0|\[::1\])\S+")
#: Verbs that count as the first part of a word: `metadata clear`, not `config:clear`.
_ALONE = frozenset(("clear", "empty", "down", "replace", "leave"))
#: Programs for which `-o` names a file to write.
_WRITE_O = ("curl", "wget", "gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "sort", "aria2c")


def look_up_words(run: Run) -> None:
    """Report what the table says about the words of a program."""
    texts = [word.text for word in run.arguments[:_MOST_LISTED]]
    for asks in asks_of(run.name):
        if any(map(asks.without.match, texts)):
            continue
        found = next((place for place in map(partial(_last_of, texts), asks.words) if place is not None), None)
        if asks.always or found is not None:
            word = run.arguments[found] if found is not None else Word(run.name)
            run.reader.report(SimulatedCall("@asks", (Word(asks.kind), word), run.where, run.state.cwd))


def _last_of(texts: Sequence[str], patterns: Sequence[re.Pattern[str]]) -> int | None:
    """Where the last of these words is, if all are there in this order."""
    place = -1
    for pattern in patterns:
        following = (at for at in range(place + 1, len(texts)) if pattern.match(texts[at]))
        place = next(following, len(texts))
    return place if place < len(texts) else None


def look_at_words(run: Run, arguments: Sequence[Word], *, is_script: bool = False) -> None:
    """Report what the words of a program say that it does, unless the policy knows the program.

    The `--force` of a script in the project says nothing.
    """
    words = arguments[:_MOST_WORDS]
    _look_at_outputs(run, words)
    if run.name in KNOWN or run.name[:1] in ("@", "<", ">") or (words and words[0].text == "="):
        return
    if any(_NO_CHANGE.fullmatch(word.text) for word in words):
        return
    if not is_script and _VERB_IN_NAME.search(run.name):
        run.reader.report(SimulatedCall("@risky", (Word("deletes"), Word(run.name)), run.where, run.state.cwd))
    for kind, word in _risks(run.name, words):
        if is_script and (word.text == "--force" or _CONSENT.fullmatch(word.text)):
            continue
        run.reader.report(SimulatedCall("@risky", (Word(kind), word), run.where, run.state.cwd))


def _look_at_outputs(run: Run, words: Sequence[Word]) -> None:
    for place, word in enumerate(words):
        name, equals, value = word.marked.partition("=")
        if name.startswith("-") and _OUTPUT.fullmatch(name):
            if len(name) == 2 and run.name in KNOWN and run.name not in _WRITE_O:
                continue
            target = value if equals else "".join(other.marked for other in words[place + 1 : place + 2])
            if run.name not in KNOWN and _ADDRESS.fullmatch(target):
                run.reader.report(SimulatedCall("@risky", (Word("remote"), Word(target)), run.where, run.state.cwd))
            if target.startswith(("/", HOME)):
                run.reader.report(SimulatedCall(">", (Word(target, word.source),), run.where, run.state.cwd))


def _risks(program: str, words: Sequence[Word]) -> Iterator[tuple[str, Word]]:
    operands: list[Word] = []
    previous = ""
    for word in words:
        text = word.text
        if _PROSE.fullmatch(previous):
            pass
        elif _STATEMENT.match(text):
            yield "deletes", word
        elif text.startswith("-"):
            name, _, value = text.partition("=")
            if _RISKY.fullmatch(name) and "cache" not in text:
                yield "deletes", word
            if _CODE_OPTION.fullmatch(name) and _CODE.search(value):
                yield "code", word
        elif _CODE_OPTION.fullmatch(previous) and _CODE.search(text):
            yield "code", word
        elif not previous.startswith("-") and _ACCOUNT.fullmatch(text):
            yield "remote", word
        else:
            operands.append(word)
        previous = text
    texts = [word.text for word in words]
    if any(map(_METHOD.fullmatch, texts)) and any(map(_ADDRESS.fullmatch, texts)):
        yield "remote", next(word for word in words if _METHOD.fullmatch(word.text))
    yield from _verb(program, operands)
    firsts = {pieces[0][0] for word in operands[:_MOST_NOUNS] if (pieces := _pieces(word.text))}
    if firsts and firsts.isdisjoint(READS | MAKES) and not program.startswith("create-"):
        yield from (("remote", word) for word in words if _CONSENT.fullmatch(word.text))


def _verb(program: str, operands: Sequence[Word]) -> Iterator[tuple[str, Word]]:
    """The first operand that names an action, such as `delete`, `delete-stack`, `apps:destroy` or `DeleteVolume`."""
    # The command that a wrapper runs is judged.
    inside = {"ssh": 0, "exec": 0, **WRAPPERS[program].after} if program in WRAPPERS else {}
    for place, word in enumerate(operands[:_MOST_NOUNS]):
        following = operands[place + 1].text if place + 1 < len(operands) else ""
        if word.text in inside or "cache" in word.text.lower():
            return
        pieces = _pieces(word.text)
        if not pieces:
            continue
        parts = pieces[0]
        if parts[0] in ("prod", "production"):
            yield "remote", word
            return
        if parts[0] in READS and following not in DELETES:
            return
        verbs = {parts[0], *(part for piece in pieces for part in (piece[0], piece[-1]) if part not in _ALONE)}
        if not verbs.isdisjoint(DELETES) or _VERB_FIRST.fullmatch(parts[0]) or _VERB_IN_NAME.search(word.text):
            yield "deletes", word
            return
        if not verbs.isdisjoint(ACTS) and following not in READS:
            yield "remote", word
            return


def _pieces(text: str) -> list[list[str]]:
    """The words of a subcommand, for each piece between colons; none in a path, a file name or a sentence."""
    if not _SUBCOMMAND.fullmatch(text) or _FILE_NAME.fullmatch(text):
        return []
    found = [[part.lower() for part in _PARTS.findall(piece)] for piece in text.split(":")]
    return [parts for parts in found if parts]
