"""Programs that run another one for each of many things: `find`, `xargs`, `parallel`, `fd`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.safety.marks import UNKNOWN, split_value
from holdfast.safety.programs.base import Run, joined, names
from holdfast.safety.state import Call, Feed, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.safety.programs.base import Handler

_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_GLOBAL = ("-H", "-L", "-P", "-D", "-O")
_DELETERS = ("rm", "unlink", "shred")
_NARROWING = ("-name", "-iname")
_XARGS_VALUES = names(
    "-I -n -P -d -E -L -s -a --max-args --max-procs --delimiter --replace --arg-file --max-lines --max-chars --eof"
)
_PARALLEL_VALUES = names(
    "-j --jobs -S --sshlogin -a --arg-file -I -N -n --colsep -C --joblog --timeout --delay --tmpdir"
)


def find(run: Run) -> Feed | None:
    """What it finds is `start/name`; what it does with that is a command of its own."""
    found = _found(run)
    texts = [word.text for word in run.arguments]
    if "-delete" in texts and ("-empty" not in texts or {"-o", "-or", ",", "!", "-not"}.intersection(texts)):
        call = Call("@find-delete", tuple(found), run.where, run.state.cwd)
        run.reader.report(call)
    for place, text in enumerate(texts):
        if text in _RUNS:
            _each(run, run.arguments[place + 1 :], found)
        elif text in ("-fprint", "-fprintf", "-fls", "-fprint0") and place + 1 < len(texts):
            run.reader.report(Call(">", (run.arguments[place + 1],), run.where, run.state.cwd))
    feed = run.unknown()
    return Feed(None, feed.source, feed.programs, tuple(word.marked for word in found))


def _found(run: Run) -> list[Word]:
    starts: list[Word] = []
    for word in run.arguments:
        if word.text.startswith(("-", "(", "!")) and word.text not in _GLOBAL:
            break
        if word.text not in _GLOBAL:
            starts.append(word)
    names = _names(run)
    starts = starts or [Word(".", ".")]
    return [Word(f"{start.marked}/{name}", start.source) for start in starts for name in names] or starts


def _names(run: Run) -> list[str]:
    """The names that are looked for, when nothing else can be found."""
    texts = [word.text for word in run.arguments]
    if any(text in ("-o", "-or") for text in texts) and not _names_in_every_choice(texts):
        return []
    return [
        split_value(run.arguments[place + 1].text, "")
        for place, text in enumerate(texts[:-1])
        if text in _NARROWING and (place == 0 or texts[place - 1] not in ("!", "-not"))
    ]


def _names_in_every_choice(texts: list[str]) -> bool:
    choices: list[list[str]] = [[]]
    for text in texts:
        if text in ("-o", "-or"):
            choices.append([])
        else:
            choices[-1].append(text)
    return all(any(text in _NARROWING for text in choice) for choice in choices)


def _each(run: Run, rest: tuple[Word, ...], found: list[Word]) -> None:
    texts = [word.text for word in rest]
    end = next((place for place, text in enumerate(texts) if text in (";", "+")), len(rest))
    _note_deleted(run, rest[:end], found)
    for item in found:
        run.perform([_filled(word, "{}", item) for word in rest[:end]])


def _note_deleted(run: Run, line: Sequence[Word], found: list[Word]) -> None:
    """What is found and then deleted file by file is as gone as with -delete."""
    if line and line[0].text.rpartition("/")[2] in _DELETERS:
        run.reader.report(Call("@find-delete", tuple(found), run.where, run.state.cwd))


def _filled(word: Word, sign: str, item: Word) -> Word:
    if sign not in word.text:
        return word
    return Word(word.text.replace(sign, item.marked), f"{word.source} {item.source}")


def xargs(run: Run) -> Feed | None:
    line = run.command_line(_XARGS_VALUES) or [Word("echo", "echo")]
    if any(word.text == "-I" or word.text.startswith(("-I", "-i", "--replace")) for word in run.arguments):
        sign = run.option("-I", "--replace")
        items = _items(run, by_line=True)
        for item in items:
            run.perform([_filled(word, (sign.text if sign else "") or "{}", item) for word in line])
        return None
    one = any(word.text in ("-0", "--null", "-d", "--delimiter") for word in run.arguments)
    items = _items(run, by_line=one)
    if len(line) == 1 and line[0].text.rpartition("/")[2] in ("sh", "bash") and run.has("-P"):
        run.find("@fork-loop")
    if run.stdin and run.stdin.paths:
        _note_deleted(run, line, items)
    run.perform([*line, *items], Feed(""))
    return None


def _items(run: Run, *, by_line: bool) -> list[Word]:
    """What stands on the input, as far as that is known."""
    feed = run.stdin
    if feed is not None and feed.text is not None:
        pieces = feed.text.replace("\0", "\n").rstrip("\n").split("\n") if by_line else feed.text.split()
        return [Word(piece.strip("\"'") if not by_line else piece, piece) for piece in pieces[:64]]
    if feed is not None and feed.paths:
        return [Word(path, feed.source) for path in feed.paths]
    source = feed.source if feed else ""
    return [Word(UNKNOWN, source)]


def parallel(run: Run) -> Feed | None:
    line = run.command_line(_PARALLEL_VALUES)
    texts = [word.text for word in line]
    cut = next((place for place, text in enumerate(texts) if text.startswith(":::")), len(line))
    items = [word for word in line[cut + 1 :] if not word.text.startswith(":::")] or _items(run, by_line=True)
    for item in items[:64]:
        filled = [_filled(word, "{}", item) for word in line[:cut]]
        run.script(joined(filled if "{}" in " ".join(texts[:cut]) else [*filled, item]))
    return None


def fd(run: Run) -> Feed | None:
    for place, word in enumerate(run.arguments):
        if word.text in ("-x", "-X", "--exec", "--exec-batch"):
            run.perform([*run.arguments[place + 1 :], Word(UNKNOWN, run.where)])
    return None


HANDLERS: dict[str, Handler] = {
    "find": find,
    "gfind": find,
    "xargs": xargs,
    "gxargs": xargs,
    "parallel": parallel,
    "fd": fd,
    "fdfind": fd,
}
