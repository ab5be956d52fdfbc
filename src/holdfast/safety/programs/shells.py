"""Shells, what makes a shell read text (`sh -c`, `eval`, `source`, `trap`), and builtins that change its state."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.safety.assignments import declare_word
from holdfast.safety.marks import HOME, UNKNOWN, letters
from holdfast.safety.places import resolve
from holdfast.safety.programs.base import Run, joined
from holdfast.safety.state import NOTHING, Feed, Word
from holdfast.safety.tables import FETCHERS, PATTERNS, SHELLS

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler

#: No variable: marks that the passwords of a file are in the environment.
DOTENV = "@dotenv"
_VALUES = ("--rcfile", "--init-file", "-o", "+o", "-O", "+O")
_FOR_EVAL = re.compile(rf'^"?(?:\$\(|`)\s*(?:{PATTERNS["for_eval"]})\b[^;|&`$<>]*(?:\)|`)"?$')


def shell(run: Run) -> Feed | None:
    flags, rest = _options(run)
    if file := run.option("--rcfile", "--init-file"):
        code_file(run, file)
    if "n" in flags and "c" not in flags:
        return None
    if "c" in flags:
        return _command_text(run, rest)
    if rest and "s" not in flags:
        return code_file(run, rest[0], tuple(word.marked for word in rest[1:]))
    return fed(run, run.stdin)


def _options(run: Run) -> tuple[str, list[Word]]:
    """The letters of the options, and the words behind them."""
    flags, rest = "", list(run.arguments)
    while rest and rest[0].text[:1] in ("-", "+") and rest[0].text != "-":
        option = rest.pop(0).text
        if option == "--":
            break
        if option == "--command" or option.startswith("--command="):
            rest[:0] = [Word(option.partition("=")[2])] if "=" in option else []
            return flags + "c", rest
        if not option.startswith("--"):
            flags += option[1:]
        if (option in _VALUES or (not option.startswith("--") and option[-1:] in "oO")) and rest:
            rest.pop(0)
    return flags, rest


def _command_text(run: Run, rest: list[Word]) -> Feed | None:
    if not rest:
        run.find("@piped-code", *(run.stdin.programs if run.stdin else ("arguments",)))
        return None
    state = run.state.copy()
    state.values["0"] = (rest[1].marked,) if len(rest) > 1 else ("@self",)
    return replace(run, state=state).script(rest[0].marked, tuple(word.marked for word in rest[2:]))


def fed(run: Run, feed: Feed | None, *, from_file: bool = False) -> Feed | None:
    """A shell that reads its text from a pipe or a file."""
    if feed is None:
        return None
    if feed.text is not None:
        return run.script(feed.text)
    if feed.programs != ("<",) and not (from_file and not FETCHERS.intersection(feed.programs)):
        run.find("@piped-code", *feed.programs)
    return None


def code_file(run: Run, word: Word, arguments: tuple[str, ...] = ()) -> Feed | None:
    """A shell reads a file, whose content may be known."""
    if UNKNOWN in word.marked and FETCHERS.intersection(re.findall(r"\w+", word.source)):
        run.find("@piped-code", word.source)
    held = run.held(word)
    if held is None:
        return None
    if held.text is not None:
        return run.script(held.text, arguments)
    return fed(run, held, from_file=held is not run.stdin and not word.text.startswith("/dev/fd/"))


def evaluate(run: Run) -> Feed | None:
    known = [word for word in run.arguments if UNKNOWN not in word.marked or not _FOR_EVAL.match(word.source)]
    return run.here(joined(known))


def source(run: Run) -> Feed | None:
    if not run.arguments:
        return None
    if re.fullmatch(r"(.*/)?\.env(\..*)?", run.arguments[0].text):
        run.state.values[DOTENV] = (run.arguments[0].marked,)
    return code_file(run, run.arguments[0], tuple(word.marked for word in run.arguments[1:]))


def trap(run: Run) -> Feed | None:
    operands = run.operands()
    if len(operands) > 1 and operands[0].text not in ("", "-"):
        run.script(operands[0].marked)
    return NOTHING


def alias(run: Run) -> Feed | None:
    for word in run.arguments:
        name, equals, value = word.marked.partition("=")
        if equals:
            run.state.aliases[letters(name)] = value
            run.script(value)
    return NOTHING


def later(run: Run) -> Feed | None:
    """`at` and `batch` run what they read."""
    return None if run.has("-l", "-r", "-d", "-c") or run.option("-f") else fed(run, run.stdin)


def cd(run: Run) -> Feed | None:
    operands = run.operands()
    if run.name == "popd" or (operands and operands[0].text == "-"):
        run.state.cwd = UNKNOWN
    elif operands:
        run.state.cwd = resolve(operands[0].marked, run.state.cwd)
    elif run.name == "cd":
        run.state.cwd = HOME
    return NOTHING


def read(run: Run) -> Feed | None:
    """The variables get the input if it is known: every line of it may be the one."""
    names = [word.text for word in run.operands(["-d", "-n", "-N", "-p", "-t", "-u", "-i"])] or ["REPLY"]
    feed = run.stdin or Feed()
    lines = [line.split(None, len(names) - 1) for line in (feed.text or "").splitlines()[:16]]
    for place, name in enumerate(names):
        values = tuple(fields[place].rstrip() if place < len(fields) else "" for fields in lines) or feed.paths
        run.state.values[name] = values or (UNKNOWN,)
    if "holdfast" in feed.source:
        run.state.values[names[0]] = (f"{UNKNOWN}holdfast",)
    return NOTHING


def mapfile(run: Run) -> Feed | None:
    names = run.operands(["-d", "-n", "-O", "-s", "-u", "-C", "-c"])
    text = run.stdin.text if run.stdin else None
    if callback := run.option("-C"):
        run.script(callback.marked)
    run.state.arrays[names[0].text if names else "MAPFILE"] = tuple(text.splitlines()[:256]) if text else (UNKNOWN,)
    return NOTHING


def set_(run: Run) -> Feed | None:
    texts = [word.text for word in run.arguments]
    if "--" in texts:
        run.state.arguments = tuple(word.marked for word in run.arguments[texts.index("--") + 1 :])
    elif texts and texts[0][:1] not in ("-", "+"):
        run.state.arguments = tuple(word.marked for word in run.arguments)
    return NOTHING if texts else None


def shift(run: Run) -> Feed | None:
    if run.state.arguments is not None:
        run.state.arguments = run.state.arguments[1:]
    return NOTHING


def bind(run: Run) -> Feed | None:
    """`bind -x '"key": command'` runs a command at a key."""
    if (keys := run.option("-x")) and ":" in keys.text:
        run.script(keys.marked.partition(":")[2])
    return NOTHING


def declare(run: Run) -> Feed | None:
    for word in run.arguments:
        declare_word(run.reader, word, run.state)
    return None if run.has("-p") else NOTHING


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(SHELLS, shell),
    "eval": evaluate,
    **dict.fromkeys(("source", "."), source),
    "trap": trap,
    "alias": alias,
    **dict.fromkeys(("at", "batch"), later),
    **dict.fromkeys(("cd", "pushd", "popd"), cd),
    "read": read,
    **dict.fromkeys(("mapfile", "readarray"), mapfile),
    "set": set_,
    "shift": shift,
    "bind": bind,
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), declare),
}
