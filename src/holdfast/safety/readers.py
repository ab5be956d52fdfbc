"""Who reads what is typed: told from the calls that a command makes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from holdfast.safety.tables import (
    CONSOLES,
    DATABASES,
    ENTERING,
    LANGUAGES,
    PAGERS,
    REMOTE_SHELLS,
    SHELLS,
    TERMINALS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.safety.state import Call

Kind = Literal["shell", "code", "sql", "pager", "plain"]
_STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/dev/tty")


def reader_of(calls: list[Call]) -> tuple[Kind, str]:
    """The last one that reads, and its program; `plain` where nobody does."""
    found: tuple[Kind, str] = ("plain", "")
    for call in calls:
        kind = _kind(call)
        found = (kind, call.program) if kind != "plain" else found
    return found


def _kind(call: Call) -> Kind:
    """What a program reads when it is started like this."""
    operands = [word.text for word in call.arguments if not word.text.startswith("-")]
    operands = [text for text in operands if text not in _STANDARD_INPUT]
    options = [word.text for word in call.arguments if word.text.startswith("-")]
    if call.program in SHELLS and (not operands or _has_letter(options, "s")) and not _has_letter(options, "cn"):
        return "shell"
    if _starts_shell(call.program, operands, options):
        return "shell"
    if any(word in ("shell", "console", "shell_plus", "repl", "tinker") for word in operands[:2]):
        return "code"
    if call.program in LANGUAGES or call.program in CONSOLES:
        interactive = not operands or _has_letter(options, "i")
        return "code" if interactive and not {"-c", "-e", "-m", "-V"}.intersection(options) else "plain"
    if call.program in DATABASES and not {"-c", "-e", "-f", "--command", "--execute", "-Q", "-q"}.intersection(options):
        return "sql"
    return "pager" if call.program in PAGERS else "plain"


def _starts_shell(program: str, operands: list[str], options: list[str]) -> bool:
    if program in ("sudo", "doas"):
        return _has_letter(options, "is") or {"--shell", "--login"}.intersection(options) != set()
    if program in ("docker", "podman", "nerdctl"):
        # Without a command line, the image says what runs: mostly a shell.
        verb = next((word for word in operands if word in ("run", "exec", "attach", "start")), "")
        return verb == "attach" or (bool(verb) and _has_letter(options, "i"))
    if program in REMOTE_SHELLS:
        return bool(operands)
    return program in TERMINALS or (program in ENTERING and bool({"shell", "ssh", "console"} & set(operands[:3])))


def _has_letter(options: Sequence[str], letters: str) -> bool:
    """Whether one of these letters is among options of one letter: `-i`, `-it`."""
    return any(
        re.fullmatch(r"-\w+", option) and any(letter in option for letter in letters)
        for option in options
        if not option.startswith("--")
    )
