"""The numbers of the tools."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.model.shortening import CharacterBudget


class Limits(NamedTuple):
    """How long calls last and how much they show. Times are seconds."""

    window: float = 180.0
    """A foreground command that lasts longer goes on in the background."""
    longest_window: float = 600.0
    """The most that a call can ask for."""
    wait: float = 180.0
    """The longest single wait, and the usual one."""
    call: float | None = None
    """Where the caller gives up: the longest that a foreground command is waited for, its start included."""
    room: CharacterBudget = CharacterBudget(30_000, 10_000)
    """For the output of a foreground command, and of a log page of the usual size."""
    large_room: CharacterBudget = CharacterBudget(200_000, 60_000)
    """For a log page that was asked for by its size."""
    poll: int = 1000
    """Characters of output that a poll shows."""
    end: int = 2000
    """Characters of output that a wait shows."""
    page: int = 200
    """Lines of a log page."""
    notices: int = 5
    """So many notices ride on one answer at most."""
    listed: int = 20
    """So many processes are listed."""


#: Nothing is waited for for less.
SHORTEST_WINDOW = 0.1
