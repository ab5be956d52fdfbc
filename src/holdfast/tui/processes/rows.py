"""Rows of processes: how each is drawn, in which order, and what a filter selects. No I/O."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.client.process import Process
from holdfast.model.units import size_text
from holdfast.tui import paint
from holdfast.tui.states import age_of, note_of, state_of

if TYPE_CHECKING:
    from rich.segment import Segment

#: The session of the agents' own processes: listed only where the filter names it.
AGENTS = "agents"
_STATE, _AGE, _SESSION, _SIZE = 14, 9, 12, 7
_DIM = ("dim", False)


def title_of(process: Process) -> str:
    """Its name and its command."""
    return f"{process.name}  {process.command}" if process.name else str(process.command)


def ended_ids(processes: Iterable[Process]) -> frozenset[str]:
    """Those that have ended."""
    return frozenset(one.id for one in processes if one.status == "ended")


def ordered(processes: Iterable[Process], over: frozenset[str]) -> list[Process]:
    """The newest first; those of `over` come last while they are ended. Else an end changes no row's place."""

    def place(one: Process) -> tuple[bool, float, str]:
        return one.id in over and one.status == "ended", -(one.created_at or one.started_at or 0.0), one.id

    return sorted(processes, key=place)


def selected(processes: Iterable[Process], text: str) -> list[Process]:
    """Those in which all words of the text occur: in the state, the name, the command, the session, the id."""
    words = text.lower().split()
    found = []
    for process in processes:
        if process.session == AGENTS and AGENTS not in words:
            continue
        if words:
            state = state_of(process)
            parts = (state.key, state.word, process.name, process.command, process.session, process.id, process.cwd)
            hay = " ".join(str(part or "") for part in (*parts, process.backend)).lower()
            if not all(word in hay for word in words):
                continue
        found.append(process)
    return found


def note_text(processes: Iterable[Process]) -> str:
    """Right of the tabs."""
    running = sum(1 for one in processes if one.status == "running" and one.session != AGENTS)
    return f"{running} running · holdfast"


def draw_process(process: Process, width: int, dark: bool) -> list[Segment]:
    """One line."""
    return paint.drawn(process_parts(process, width), dark)


def process_parts(process: Process, width: int) -> list[paint.Part]:
    """One line. A narrow one leaves out the size, then the session."""
    now = time.time()
    state = state_of(process)
    note = note_of(process, now)
    left = width - _STATE - _AGE - 2
    session = _SESSION if left >= 36 else 0
    size = _SIZE if left >= 70 else 0
    left -= session + size
    noted = min(len(note), max(0, left // 3)) + 2 if note and left >= 20 else 0
    is_loud = state.colour in ("bad", "warn")
    return [
        (" " + paint.fit(state.label, _STATE), state.colour, is_loud),
        (paint.fit(title_of(process), left - noted), "text", False),
        ("  " + paint.fit(note, noted - 2) if noted else "", *(("warn", True) if state.colour == "warn" else _DIM)),
        ("  " + paint.fit(str(process.session), session - 2) if session else "", *_DIM),
        (paint.fit(size_text(process.output_bytes or 0), size, right=True) if size else "", *_DIM),
        (" " + paint.fit(age_of(process, now), _AGE, right=True), *_DIM),
    ]


def draw_short(process: Process, width: int, dark: bool) -> list[Segment]:
    """In the pane of a session: icon, name, what matters, age."""
    now = time.time()
    state = state_of(process)
    note = note_of(process, now) or ("" if state.key == "running" else state.word)
    age = age_of(process, now)
    left = width - 4 - len(age)
    noted = min(len(note), max(0, left // 2))
    loud = paint.style(dark, state.colour)
    return paint.joined(
        (f" {state.icon} ", loud),
        (paint.fit(process.name or str(process.command), left - noted - 1), paint.style(dark, "text")),
        (" " + paint.fit(note, noted), loud),
        (" " + age, paint.style(dark, "dim")),
    )
