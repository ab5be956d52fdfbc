"""When a process counts as waiting for input, and its prompt. No I/O.

A process waits for input when a process of its tree is blocked reading a terminal in canonical mode, and either its
last line is unfinished and is neither the prompt of an idle shell nor a progress bar, or echo is off, as for a
password. A program that reads key by key without echo (an editor, a pager, the line editor of a shell) never counts. On
a pipe there are no terminal modes: there the unfinished line has to end like a question, or with a blank.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from holdfast.records import Struct

if TYPE_CHECKING:
    from holdfast.model.process import HeldProcess

#: What the processes of a tree do: read the input; poll several files, perhaps the input; cannot be inspected, because
#: they run as another user; none of these.
Reader: TypeAlias = Literal["reading", "polling", "hidden", "busy"]

LONGEST = 200
#: Prompts of an idle shell or interpreter end with these.
_IDLE = ("$", "#", "%", ">", "❯", "»")
_ASKING = ("?", ":", "]", ")")
#: `choice>` and `Pick one (1-3)>` are questions; `me@host ~>`, `->` and `</p>` are not, nor are these interpreters.
_CHOICE = re.compile(r"(?:^|[^<]*\s)([\w(][\w(.,'-]*[\w)]|\w)\s?>", re.ASCII)
_INTERPRETERS = frozenset({
    "ftp", "ghci", "gnuplot", "hive", "iex", "irb", "jshell", "lftp", "mariadb", "mongo", "mysql", "node", "octave",
    "php", "prelude", "ps", "redis", "scala", "sftp", "sql", "sqlite", "telnet",
})  # fmt: skip
#: The figures of a progress bar.
_PROGRESS = re.compile(r"\d\s?%|\d\s?(?:it|[kKMGT]?i?B)/s\b|\ds/it\b|\bETA\b")
_YES_OR_NO = re.compile(r"\by(?:es)?/no?\b", re.IGNORECASE)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0


class Terminal(NamedTuple):
    """The modes of a terminal."""

    echo: bool
    """It shows the input."""
    canonical: bool
    """Programs read whole lines."""


class InputNeed(Struct, frozen=True):
    """A prompt without an answer. `run` is the start time of the run of the process."""

    run: float
    since: float
    at: int
    """The offset of the prompt in the output: it identifies the prompt."""
    prompt: str
    secret: bool


def asks(terminal: Terminal | None, reader: Reader, line: str) -> bool:
    """Whether it waits for input. `line` is the text after the last line end."""
    if terminal is None:
        ends = line.rstrip().endswith(_ASKING) or line != line.rstrip() or _is_choice(line)
        return reader == "reading" and ends and _is_prompt(line)
    if terminal.canonical and not terminal.echo:
        return reader != "busy"
    return reader == "reading" and terminal.echo and _is_prompt(line)


def _is_prompt(line: str) -> bool:
    """Whether an unfinished line may be a prompt: not that of an idle shell, and no progress bar."""
    text = line.strip()
    if not text or (text.endswith(_IDLE) and not _is_choice(text)):
        return False
    return text.endswith(("?", ":")) or not _PROGRESS.search(text) or _YES_OR_NO.search(text) is not None


def _is_choice(line: str) -> bool:
    found = _CHOICE.fullmatch(line.strip())
    return found is not None and found[1].lower().rstrip("0123456789") not in _INTERPRETERS


def rests(terminal: Terminal | None, reader: Reader) -> bool:
    """Whether the result cannot change before there is new input or output."""
    return reader == "reading" or (reader == "polling" and terminal is not None and not terminal.canonical)


def hides(terminal: Terminal | None) -> bool:
    """Whether the next input is not echoed: a terminal without echo, or a pipe."""
    return terminal is None or (terminal.canonical and not terminal.echo)


def pause(probes: int) -> float:
    """Seconds until the next probe, after this number of probes that found nothing new."""
    return float(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(probes, 10)))


def prompt_of(text: str, mask: Callable[[str], str] = str) -> str:
    """The prompt for users: the last line that is not empty, printable, masked, and cut to LONGEST."""
    lines = [line for line in text.split("\n") if line.strip()]
    shown = "".join(one if one.isprintable() else " " for one in mask(lines[-1] if lines else ""))
    shown = " ".join(shown.split())
    return shown if len(shown) <= LONGEST else f"…{shown[1 - LONGEST :]}"


def mark_of(process: HeldProcess) -> InputNeed | None:
    """The prompt of this run; None for one of another run, or after the end."""
    mark = process.need
    return mark if mark is not None and process.is_up and mark.run == process.started_at else None


def need_object(need: InputNeed) -> dict[str, Any]:
    """The prompt as clients see it."""
    return {"since": need.since, "prompt": need.prompt, "secret": need.secret}
