"""Programs whose output can be told from what they are given: `echo`, `printf`, `cat`, `base64 -d` and a few more."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from holdfast.safety.escapes import unescaped
from holdfast.safety.marks import HOME, UNKNOWN, cleaned, letters
from holdfast.safety.places import resolve
from holdfast.safety.programs.base import Run
from holdfast.safety.state import NOTHING, Feed

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.safety.programs.base import Handler

#: Text longer than that is no longer followed.
MOST_OUTPUT = 64 * 1024
_FORMAT = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?([sdbqiuxXcof%])")


def _known(run: Run, text: str) -> Feed | None:
    """A known text, if it is one; HOME is left in it, for it is part of a path."""
    return Feed(text, run.where, (run.name,)) if UNKNOWN not in text and len(text) <= MOST_OUTPUT else None


def echo(run: Run) -> Feed | None:
    words = [_stored(word.marked) for word in run.arguments]
    flags = ""
    while words and re.fullmatch(r"-[neE]+", words[0]):
        flags += words.pop(0)
    text = " ".join(words)
    return _known(run, (unescaped(text) if "e" in flags else text) + ("" if "n" in flags else "\n"))


def _stored(marked: str) -> str:
    return HOME.join(letters(part) for part in marked.split(HOME))


def printf(run: Run) -> Feed | None:
    words = [_stored(word.marked) for word in run.arguments]
    variable = words[1] if words[:1] == ["-v"] and len(words) > 1 else None
    words = words[2:] if variable else words
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        return None
    values = [unescaped(word) if "%b" in words[0] else word for word in words[1:]]
    text = _formatted(unescaped(words[0]), values)
    if variable:
        run.state.set(letters(variable), (text,))
        return NOTHING
    return _known(run, text)


def _formatted(form: str, values: list[str]) -> str:
    made, rest = "", list(values)
    for _ in range(256):
        made += _FORMAT.sub(lambda sign: "%" if sign[1] == "%" else (rest.pop(0) if rest else ""), form)
        if not rest or not _FORMAT.search(form.replace("%%", "")):
            break
    return made


def cat(run: Run) -> Feed | None:
    operands = run.operands()
    if not operands:
        return run.stdin
    feed = NOTHING
    for word in operands:
        held = run.held(word)
        feed = feed.joined(held if held is not None else Feed(None, run.where, (run.name,)))
    return feed


def filtered(change: Callable[[str], str | None], *options: str) -> Handler:
    """A program that turns its input into something that can be worked out; with options, only with one of them."""

    def handler(run: Run) -> Feed | None:
        if options and not any(_bundled(word.text, options) for word in run.arguments):
            return None
        feed = cat(run)
        made = change(feed.text) if feed is not None and feed.text is not None else None
        return _known(run, made) if made is not None else None

    return handler


def _bundled(text: str, options: tuple[str, ...]) -> bool:
    short = re.fullmatch(r"-\w+", text)
    return text in options or any(short and len(option) == 2 and option[1] in text for option in options)


def _base64(text: str) -> str | None:
    try:
        return cleaned(base64.b64decode("".join(text.split()) + "==").decode("utf-8", "replace"))
    except (binascii.Error, ValueError):
        return None


def _base32(text: str) -> str | None:
    try:
        return cleaned(base64.b32decode("".join(text.split())).decode("utf-8", "replace"))
    except (binascii.Error, ValueError):
        return None


def _hex(text: str) -> str | None:
    try:
        return cleaned(bytes.fromhex("".join(text.split())).decode("utf-8", "replace"))
    except ValueError:
        return None


def _reversed(text: str) -> str:
    return "".join(line.rstrip("\n")[::-1] + "\n" for line in text.splitlines(keepends=True))


def mkfifo(run: Run) -> Feed | None:
    """Whoever reads from it reads what anybody writes."""
    for word in run.operands(["-m", "--mode"]):
        run.state.files[resolve(word.marked, run.state.cwd)] = Feed(None, run.where, (run.name,))
    return NOTHING


def which(run: Run) -> Feed | None:
    """The program that is looked for, by its name."""
    operands = run.operands()
    return _known(run, _stored(operands[0].marked) + "\n") if len(operands) == 1 else None


def mktemp(run: Run) -> Feed | None:
    return Feed("/tmp/tmp.made\n", run.where, (run.name,))


def pwd(run: Run) -> Feed | None:
    return Feed(run.state.cwd + "\n", run.where, (run.name,))


def realpath(run: Run) -> Feed | None:
    operands = run.operands()
    if len(operands) != 1 or not operands[0].known:
        return None
    return Feed(resolve(operands[0].marked, run.state.cwd) + "\n", run.where, (run.name,))


def tee(run: Run) -> Feed | None:
    """Its files hold what it reads, and so does the pipe behind it."""
    feed = run.stdin or run.unknown()
    for word in run.operands():
        if word.known:
            run.state.files[resolve(word.marked, run.state.cwd)] = feed
    return feed


HANDLERS: dict[str, Handler] = {
    "echo": echo,
    "printf": printf,
    "cat": cat,
    "base64": filtered(_base64, "-d", "-D", "--decode", "--dec"),
    "base32": filtered(_base32, "-d", "--decode"),
    "xxd": filtered(_hex, "-r"),
    "rev": filtered(_reversed),
    "tac": filtered(lambda text: "\n".join(reversed(text.rstrip("\n").split("\n"))) + "\n"),
    "which": which,
    "mkfifo": mkfifo,
    "mktemp": mktemp,
    "pwd": pwd,
    "realpath": realpath,
    "tee": tee,
    "true": lambda run: NOTHING,
    ":": lambda run: NOTHING,
}
