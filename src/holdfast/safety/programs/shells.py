"""Shells and what makes this shell read text: `sh -c`, `eval`, `source`, `trap`, here-documents into a shell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.safety.marks import UNKNOWN, letters
from holdfast.safety.programs.base import FETCHERS, Run, joined
from holdfast.safety.state import NOTHING, Feed, Word

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler

SHELLS = (
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "mksh",
    "ash",
    "fish",
    "rbash",
    "yash",
    "csh",
    "tcsh",
    "bash5",
    "hush",
    "oksh",
)
#: Not a name of a variable: says that passwords from a file are in the environment.
DOTENV = "@dotenv"
_VALUES = ("--rcfile", "--init-file", "-o", "+o", "-O", "+O")
#: Programs whose output is made for eval.
_FOR_EVAL = re.compile(
    r"""^"?(?:\$\(|`)\s*(?:ssh-agent|direnv|pyenv|rbenv|nodenv|goenv|fnm|nvm|opam|brew|\S*/brew|starship|zoxide|dircolors|conda
    |mamba|micromamba|mise|rtx|asdf|minikube|keychain|register-python-argcomplete|luarocks|atuin|fzf|docker-machine|lesspipe
    |thefuck|vagrant|pip|pipx|gh|kubectl|helm|poetry|uv|rustup|npm|mcfly|stack|perl\s+-I\S+)\b[^;|&`$<>]*(?:\)|`)"?$""",
    re.VERBOSE,
)


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
    """The letters of the options, and what stands behind them."""
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
    inner = Run(run.reader, run.name, run.arguments, state, run.stdin, run.where)
    return inner.script(rest[0].marked, tuple(word.marked for word in rest[2:]))


def fed(run: Run, feed: Feed | None, *, from_file: bool = False) -> Feed | None:
    """A shell that reads its text from somewhere."""
    if feed is None:
        return None
    if feed.text is not None:
        return run.script(feed.text)
    if feed.programs == ("<",) or (from_file and not FETCHERS.intersection(feed.programs)):
        return None
    run.find("@piped-code", *feed.programs)
    return None


def code_file(run: Run, word: Word, arguments: tuple[str, ...] = ()) -> Feed | None:
    """A shell, or this one, reads a file that may be known."""
    if UNKNOWN in word.marked and FETCHERS.intersection(re.findall(r"\w+", word.source)):
        run.find("@piped-code", word.source)
    held = run.held(word)
    if held is None:
        return None
    if held.text is not None:
        return run.script(held.text, arguments)
    return fed(run, held, from_file=held is not run.stdin and not word.text.startswith("/dev/fd/"))


def evaluate(run: Run) -> Feed | None:
    if run.arguments and all(UNKNOWN not in word.marked or _FOR_EVAL.match(word.source) for word in run.arguments):
        known = [word for word in run.arguments if UNKNOWN not in word.marked]
        return run.here(joined(known))
    return run.here(joined(run.arguments))


def source(run: Run) -> Feed | None:
    if not run.arguments:
        return None
    if re.fullmatch(r"(.*/)?\.env(\..*)?", run.arguments[0].text):
        run.state.values[DOTENV] = (run.arguments[0].marked,)
    return code_file(run, run.arguments[0], tuple(word.marked for word in run.arguments[1:]))


def trap(run: Run) -> Feed | None:
    operands = run.operands()
    if len(operands) < 2 or operands[0].text in ("", "-"):
        return NOTHING
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
    if run.has("-l", "-r", "-d", "-c") or run.option("-f"):
        return None
    return fed(run, run.stdin)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(SHELLS, shell),
    "eval": evaluate,
    "source": source,
    ".": source,
    "trap": trap,
    "alias": alias,
    "at": later,
    "batch": later,
}
