"""The command with which another program calls holdfast, from any directory."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

from holdfast.errors import HoldfastError
from holdfast.extras import install_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_NAMES = ("holdfast", "hold")
#: Where the instance is. A host may not pass these to what it starts.
HOME_VARIABLES = ("HOLDFAST_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")


def executable() -> str:
    """The absolute path of the installed program: as it was called, or beside the interpreter. Raises HoldfastError."""
    called = sys.argv[0]
    found = shutil.which(called) if os.path.basename(called) in _NAMES else None
    beside = os.path.join(os.path.dirname(sys.executable), "holdfast")
    for path in (found, beside, shutil.which("holdfast")):
        if path and os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise HoldfastError("no executable holdfast is installed", next=f"{install_hint()}, then try again")


def named_home() -> dict[str, str]:
    """The instance, where HOLDFAST_HOME names one: for the environment of programs that are started later."""
    home = os.environ.get("HOLDFAST_HOME")
    return {"HOLDFAST_HOME": os.path.abspath(os.path.expanduser(home))} if home else {}


def as_line(*words: str, home: dict[str, str]) -> str:
    """`holdfast WORDS…` as a line for a shell, for the instance that `home` names."""
    places = [f"{name}={shlex.quote(value)}" for name, value in home.items()]
    return " ".join([*places, shlex.join([executable(), *words])])


def is_ours(words: Sequence[str], *verb: str) -> bool:
    """Whether that command is `holdfast VERB…`, wherever it is installed."""
    at = _program(words)
    is_named = at < len(words) and os.path.basename(words[at]) in _NAMES
    return is_named and tuple(words[at + 1 : at + 1 + len(verb)]) == verb


def renewed(words: Sequence[str], client: str) -> list[str]:
    """The holdfast command with the installed program and for that client. Arguments of the user stay."""
    at = _program(words)
    rest = list(words[at + 1 :])
    for place, word in enumerate(rest):
        if word == "--client" and place + 1 < len(rest):
            rest[place + 1] = client
            break
        if word.startswith("--client="):
            rest[place] = f"--client={client}"
            break
    else:
        rest[1:1] = ["--client", client]
    return [*words[:at], executable(), *rest]


def _program(words: Sequence[str]) -> int:
    """Where the program is: behind what sets its environment."""
    at = 0
    while at < len(words) and (words[at] == "env" or "=" in words[at].partition("/")[0]):
        at += 1
    return at


def arguments(line: str) -> tuple[str, ...]:
    """The arguments of the command line, without the program."""
    words = shlex.split(line)
    return tuple(words[_program(words) + 1 :])


def is_our_line(line: object, *verb: str) -> bool:
    try:
        return isinstance(line, str) and is_ours(shlex.split(line), *verb)
    except ValueError:
        return False


def words_of(entry: dict[str, Any]) -> list[str]:
    """The command of a server's entry, which has `command` and `args`."""
    args = entry.get("args")
    return [str(entry.get("command", "")), *map(str, args if isinstance(args, list) else ())]
