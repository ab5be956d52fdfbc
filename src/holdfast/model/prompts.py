"""When a process counts as waiting for input, and its prompt. No I/O.

A process waits for input when a process of its tree is blocked reading a terminal in canonical mode, and either its
last line is unfinished and is not the prompt of an idle shell, or echo is off, as for a password. A program that reads
key by key without echo (an editor, a pager, the line editor of a shell) never counts. On a pipe there are no terminal
modes: there the unfinished line has to end like a question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from holdfast.model.process import HeldProcess

#: What the processes of a tree do: read the input; poll several files, perhaps the input; cannot be inspected, because
#: they run as another user; none of these.
Reader: TypeAlias = Literal["reading", "polling", "hidden", "busy"]

LONGEST = 200
#: Prompts of an idle shell or interpreter end with these.
_IDLE = ("$", "#", "%", ">", "❯", "»")
_ASKING = ("?", ":", "]", ")")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0


class Terminal(NamedTuple):
    """The modes of a terminal."""

    echo: bool
    """It shows the input."""
    canonical: bool
    """Programs read whole lines."""


@dataclass(frozen=True, slots=True)
class InputNeed:
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
        return reader == "reading" and line.rstrip().endswith(_ASKING)
    if terminal.canonical and not terminal.echo:
        return reader != "busy"
    is_one = bool(line.strip()) and not line.rstrip().endswith(_IDLE)
    return is_one and reader == "reading" and terminal.echo


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
