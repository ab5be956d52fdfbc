"""Programs: every call is reported, and those that run others or make what others read are looked into."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.safety.marks import UNKNOWN
from holdfast.safety.programs import code, finders, outputs, shells, wrappers
from holdfast.safety.programs.base import Run
from holdfast.safety.programs.unknown import look_at_words, look_up_words
from holdfast.safety.reader import MOST_DEPTH, MOST_WORDS, Reader, TooMuch, is_unknown_program
from holdfast.safety.state import NOTHING, Feed, JudgeState, SimulatedCall, Word
from holdfast.safety.tables import DATABASES, LANGUAGES, WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.safety.programs.base import Handler

    Perform = Callable[[Reader, list[Word], JudgeState, Feed | None, str], Feed]

HANDLERS: dict[str, Handler] = {
    **wrappers.HANDLERS,
    **outputs.HANDLERS,
    **finders.HANDLERS,
    **code.HANDLERS,
    **shells.HANDLERS,
}
_VERSIONED = re.compile(r"(python|pypy|ruby|lua|php|perl|node)[\d.]+")
#: `npm:rimraf`, `rimraf@5`
_PACKAGE = re.compile(r"^(?:npm|jsr):|(?<=\w)@[\w.^~-]*$")
_LOADER = re.compile(r"ld(-linux[\w.-]*|-musl[\w.-]*)?\.so(\.\d+)?")
#: Shell keywords that the grammar takes for programs behind `time`, `!` and `coproc`.
_KEYWORDS = ("{", "!", "if", "then", "elif", "else", "while", "until", "do")


def perform(reader: Reader, words: list[Word], state: JudgeState, stdin: Feed | None, where: str) -> Feed:
    """Report a call and look into it. Returns its output, as far as it is known."""
    reader.count()
    if not words:
        return NOTHING
    if len(words) > MOST_WORDS:
        reader.find("@unparsed", where, "it has too many words")
        words = words[:MOST_WORDS]
    reader.depth += 1
    if reader.depth > MOST_DEPTH:
        raise TooMuch("it is nested too deep")
    try:
        return _perform(reader, words, state, stdin, where)
    finally:
        reader.depth -= 1


def _perform(reader: Reader, words: list[Word], state: JudgeState, stdin: Feed | None, where: str) -> Feed:
    head, arguments = words[0], tuple(words[1:])
    if is_unknown_program(head.marked):
        reader.report(SimulatedCall("@unknown-program", tuple(words), where, state.cwd))
        return Feed(None, where, ("@unknown-program",))
    if head.source in _KEYWORDS and arguments:
        return perform(reader, words[1:], state, stdin, where)
    name = program_name(head.text)
    reader.report(SimulatedCall(name, arguments, where, state.cwd))
    run = Run(reader, name, arguments, state, stdin, where)
    look_up_words(run)
    feed = _inside(run, head)
    return run.unknown() if feed is None else feed


def program_name(text: str) -> str:
    """The last part of a path; versions of interpreters go by the common name."""
    name = _PACKAGE.sub("", text.replace(UNKNOWN, "").rstrip("/").rpartition("/")[2])
    if versioned := _VERSIONED.fullmatch(name):
        return {"python": "python3"}.get(versioned[1], versioned[1])
    return "ld.so" if _LOADER.fullmatch(name) else name


def _inside(run: Run, head: Word) -> Feed | None:
    if head.text in run.state.functions:
        arguments = tuple(word.marked for word in run.arguments)
        return run.reader.call_function(head.text, arguments, run.state, run.stdin)
    if value := run.state.aliases.get(head.text):
        state = run.state.copy()
        del state.aliases[head.text]
        line = " ".join([value, *(_quoted(word) for word in run.arguments)])
        return Run(run.reader, run.name, run.arguments, state, run.stdin, run.where).here(line)
    if "/" in head.text and run.held(head) is not None:
        return shells.code_file(run, head, tuple(word.marked for word in run.arguments))
    if run.name not in WRAPPERS and run.name not in LANGUAGES and run.name not in DATABASES:
        look_at_words(run, run.arguments, is_script="/" in head.text and not head.text.startswith("/"))
    if handler := HANDLERS.get(run.name):
        return handler(run)
    wrappers.look_for_commands(run)
    return None


def _quoted(word: Word) -> str:
    return word.marked if re.fullmatch(r"[\w./~-]+", word.text) else "'" + word.marked.replace("'", "") + "'"
