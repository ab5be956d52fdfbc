"""Who reads what is typed: told from the calls that a command makes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from holdfast.safety.programs.base import names
from holdfast.safety.programs.code import LANGUAGES
from holdfast.safety.programs.shells import SHELLS
from holdfast.safety.programs.sql import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.safety.state import Call

Kind = Literal["shell", "code", "sql", "pager", "plain"]
_STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/dev/tty")
#: Programs that connect to a shell, or show one.
_HOSTS = (
    "ssh",
    "mosh",
    "autossh",
    "telnet",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "picocom",
    "minicom",
    "machinectl",
    "distrobox",
)
_TERMINALS = ("su", "login", "newgrp", "tmux", "screen", "byobu", "zellij", "script", "nsenter", "chroot", "toolbox")
_ENTERS = (
    "poetry",
    "pipenv",
    "vagrant",
    "gcloud",
    "fly",
    "flyctl",
    "heroku",
    "adb",
    "nix",
    "multipass",
    "limactl",
    "lxc",
)
#: Interpreters by other names.
CONSOLES = frozenset(
    names("iex ghci scala jshell utop ocaml erl clj bb pry octave swipl sbcl guile racket ptpython xonsh lldb jdb deno")
)
#: Programs that run what is typed behind a `!`.
PAGERS = frozenset(
    names("vim vi nvim view vimdiff less more most man ed ex gdb ftp sftp lftp mutt mail mailx nano emacs info")
)


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
    if call.program in CLIENTS and not {"-c", "-e", "-f", "--command", "--execute", "-Q", "-q"}.intersection(options):
        return "sql"
    return "pager" if call.program in PAGERS else "plain"


def _starts_shell(program: str, operands: list[str], options: list[str]) -> bool:
    if program in ("sudo", "doas"):
        return _has_letter(options, "is") or {"--shell", "--login"}.intersection(options) != set()
    if program in ("docker", "podman", "nerdctl"):
        # Without a command line, the image says what runs: mostly a shell.
        verb = next((word for word in operands if word in ("run", "exec", "attach", "start")), "")
        return verb == "attach" or (bool(verb) and _has_letter(options, "i"))
    if program in _HOSTS:
        return bool(operands)
    return program in _TERMINALS or (program in _ENTERS and bool({"shell", "ssh", "console"} & set(operands[:3])))


def _has_letter(options: Sequence[str], letters: str) -> bool:
    """Whether one of these letters is among options of one letter: `-i`, `-it`."""
    return any(
        re.fullmatch(r"-\w+", option) and any(letter in option for letter in letters)
        for option in options
        if not option.startswith("--")
    )
