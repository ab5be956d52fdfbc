"""When a process counts as waiting for input, and what it asks. No I/O.

A process asks when one of its tree is blocked reading its terminal and the program left it to the terminal to take a
line: an unfinished line that is no shell's resting prompt, or no echo, as for a password. A program that reads key by
key without echo (an editor, a pager, a shell's own line editor) draws for itself, and is never taken for one that
asks. On a pipe there is no terminal to judge by: there the unfinished line has to end like a question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from holdfast.model.process import HeldProcess

#: What those in it do: read the input; wait for several things, the input perhaps among them; cannot be looked into,
#: as what runs with another user's rights; none of it.
Reader: TypeAlias = Literal["reading", "polling", "hidden", "busy"]

LONGEST = 200
#: With these a shell or an interpreter says that it has nothing to do.
_RESTING = ("$", "#", "%", ">", "❯", "»")
_ASKING = ("?", ":", "]", ")")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0


class Terminal(NamedTuple):
    """How a terminal takes what is typed."""

    echo: bool
    """It shows what is typed."""
    canonical: bool
    """It hands over whole lines."""


@dataclass(frozen=True, slots=True)
class InputNeed:
    """A question that waits for its answer, of one run of a process, which is named by its start."""

    run: float
    since: float
    at: int
    """Where in the output it is asked: the same place is the same question."""
    prompt: str
    secret: bool


def asks(terminal: Terminal | None, reader: Reader, line: str) -> bool:
    """Whether an answer is waited for. `line` is what stands behind the last line end, as text."""
    if terminal is None:
        return reader == "reading" and line.rstrip().endswith(_ASKING)
    if terminal.canonical and not terminal.echo:
        return reader != "busy"
    is_one = bool(line.strip()) and not line.rstrip().endswith(_RESTING)
    return is_one and reader == "reading" and terminal.echo


def rests(terminal: Terminal | None, reader: Reader) -> bool:
    """Whether nothing changes about it before something is typed, or written."""
    return reader == "reading" or (reader == "polling" and terminal is not None and not terminal.canonical)


def hides(terminal: Terminal | None) -> bool:
    """Whether what is typed now is not shown: a line without echo, or a pipe."""
    return terminal is None or (terminal.canonical and not terminal.echo)


def pause(looks: int) -> float:
    """How long to wait for the next look, after so many that found nothing new."""
    return float(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(looks, 10)))


def prompt_of(text: str, mask: Callable[[str], str] = str) -> str:
    """What is asked, for people: the last line that says something, on one line, masked, not too long."""
    lines = [line for line in text.split("\n") if line.strip()]
    shown = "".join(one if one.isprintable() else " " for one in mask(lines[-1] if lines else ""))
    shown = " ".join(shown.split())
    return shown if len(shown) <= LONGEST else f"…{shown[1 - LONGEST :]}"


def mark_of(process: HeldProcess) -> InputNeed | None:
    """The question of this run; of another run, or of one that is over, it counts for nothing."""
    mark = process.need
    return mark if mark is not None and process.is_up and mark.run == process.started_at else None


def need_object(need: InputNeed) -> dict[str, Any]:
    """A question as clients see it."""
    return {"since": need.since, "prompt": need.prompt, "secret": need.secret}
