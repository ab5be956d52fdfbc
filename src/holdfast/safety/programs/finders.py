"""Programs that run another one for each of many things: `find`, `xargs`, `parallel`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.safety.marks import HOME, UNKNOWN, split_value
from holdfast.safety.programs.base import Run, joined
from holdfast.safety.programs.wrappers import other_readings, wrapper
from holdfast.safety.state import DECODED, Feed, SimulatedCall, Word
from holdfast.safety.tables import WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.safety.programs.base import Handler

_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_GLOBAL = ("-H", "-L", "-P", "-D", "-O")
_OR = ("-o", "-or")
_DELETERS = ("rm", "unlink", "shred")
#: Programs that list files below the directory, or those that they are given.
_LISTERS = frozenset(("find", "ls", "git", "fd", "fdfind", "grep", "rg", "ag", "jdupes", "fdupes", "<", "comm", "cat"))
_NARROWING = ("-name", "-iname")


def find(run: Run) -> Feed | None:
    """It finds `start/name`, and runs a command of its own for each."""
    found = _found(run)
    texts = [word.text for word in run.arguments]
    if "-delete" in texts and ("-empty" not in texts or {*_OR, ",", "!", "-not"}.intersection(texts)):
        run.reader.report(SimulatedCall("@find-delete", tuple(found), run.where, run.state.cwd))
    for place, text in enumerate(texts):
        if text in _RUNS:
            rest = run.arguments[place + 1 :]
            end = next((at for at, word in enumerate(rest) if word.text in (";", "+")), len(rest))
            report_deleted(run, rest[:end], found)
            for item in found:
                before = len(run.reader.calls)
                run.perform([_filled(word, "{}", item) for word in rest[:end]])
                inner = [call for call in run.reader.calls[before:] if item.text in (w.text for w in call.arguments)]
                for call in inner:
                    report_deleted(run, [Word(call.program)], [item])
        elif text in ("-fprint", "-fprintf", "-fls", "-fprint0") and place + 1 < len(texts):
            run.reader.report(SimulatedCall(">", (run.arguments[place + 1],), run.where, run.state.cwd))
    return replace(run.unknown(), paths=tuple(word.marked for word in found))


def _found(run: Run) -> list[Word]:
    starts: list[Word] = []
    for word in run.arguments:
        if word.text.startswith(("-", "(", "!")) and word.text not in _GLOBAL:
            break
        if word.text not in _GLOBAL:
            starts.append(word)
    starts = starts or [Word(".", ".")]
    return [Word(f"{start.marked}/{name}", start.source) for start in starts for name in _names(run)] or starts


def _names(run: Run) -> list[str]:
    """The names to find, if every choice between `-o` has one."""
    texts = [word.text for word in run.arguments]
    choices: list[list[str]] = [[]]
    for text in texts:
        if text in _OR:
            choices.append([])
        else:
            choices[-1].append(text)
    if len(choices) > 1 and not all(any(text in _NARROWING for text in choice) for choice in choices):
        return []
    return [
        split_value(run.arguments[place + 1].text, "")
        for place, text in enumerate(texts[:-1])
        if text in _NARROWING and (place == 0 or texts[place - 1] not in ("!", "-not"))
    ]


def report_deleted(run: Run, line: Sequence[Word], found: list[Word]) -> None:
    """Files that are found and deleted one by one are as gone as with -delete."""
    if found and line and line[0].text.rpartition("/")[2] in _DELETERS:
        run.reader.report(SimulatedCall("@find-delete", tuple(found), run.where, run.state.cwd))


def _filled(word: Word, sign: str, item: Word) -> Word:
    if sign not in word.text:
        return word
    return Word(word.text.replace(sign, item.marked), f"{word.source} {item.source}")


def fd(run: Run) -> Feed | None:
    """It runs a command for what it finds: below the current directory, or the directories behind the pattern."""
    place = next((at for at, word in enumerate(run.arguments) if word.text in WRAPPERS[run.name].after), None)
    if place is not None:
        operands = replace(run, arguments=run.arguments[:place]).operands(["-e", "-t", "-d", "-E", "-S", "-o"])
        starts = [word for word in operands[1:] if word.marked.startswith(("/", HOME))]
        ends = replace(run, arguments=run.arguments[:place]).option_values(("-e", "--extension"))
        named = [Word(split_value(f"./*.{end.text}", ""), end.source) for end in ends]
        report_deleted(run, run.arguments[place + 1 :], starts or named)
    return wrapper(run)


def xargs(run: Run) -> Feed | None:
    line = run.command_line(WRAPPERS[run.name].values) or [Word("echo", "echo")]
    other_readings(run, line)
    if any(word.text.startswith(("-I", "-i", "--replace")) for word in run.arguments):
        sign = run.option("-I", "--replace")
        for item in _items(run, by_line=True):
            run.perform([_filled(word, (sign.text if sign else "") or "{}", item) for word in line])
        return None
    items = _items(run, by_line=run.has("-0", "--null", "-d", "--delimiter"))
    if len(line) == 1 and line[0].text.rpartition("/")[2] in ("sh", "bash") and run.has("-P"):
        run.find("@fork-loop")
    if run.stdin and (run.stdin.paths or (run.stdin.text is None and not _LISTERS.intersection(run.stdin.programs))):
        report_deleted(run, line, items)
    run.perform([*line, *items], Feed(""))
    return None


def _items(run: Run, *, by_line: bool) -> list[Word]:
    """The items on the standard input, as far as they are known."""
    feed = run.stdin
    if feed is not None and feed.text is not None:
        pieces = feed.text.replace("\0", "\n").rstrip("\n").split("\n") if by_line else feed.text.split()
        return [Word(piece.strip("\"'") if not by_line else piece, piece) for piece in pieces[:64]]
    if feed is not None and feed.paths:
        return [Word(path, feed.source) for path in feed.paths]
    if feed is not None and DECODED in feed.programs:
        run.find("@unknown-code", feed.source)
    return [Word(UNKNOWN, feed.source if feed else "")]


def parallel(run: Run) -> Feed | None:
    line = run.command_line(WRAPPERS[run.name].values)
    other_readings(run, line)
    texts = [word.text for word in line]
    cut = next((place for place, text in enumerate(texts) if text.startswith(":::")), len(line))
    items = [word for word in line[cut + 1 :] if not word.text.startswith(":::")] or _items(run, by_line=True)
    for item in items[:64]:
        filled = [_filled(word, "{}", item) for word in line[:cut]]
        run.script(joined(filled if "{}" in " ".join(texts[:cut]) else [*filled, item]))
    return None


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("find", "gfind"), find),
    **dict.fromkeys(("xargs", "gxargs"), xargs),
    **dict.fromkeys(("fd", "fdfind"), fd),
    "parallel": parallel,
}
