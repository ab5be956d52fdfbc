"""One module for each measure; each has one function that takes a Run and returns figures."""

from __future__ import annotations

from collections.abc import Callable

from bench.figure import Figure
from bench.measures import (
    bridge,
    bus,
    chaos,
    exit,
    first_byte,
    flood,
    followers,
    held,
    http,
    listing,
    notify,
    places,
    rate,
    sampling,
    screen,
    search,
    start,
    terminal,
    tokens,
    tui,
    watch,
    watching,
)
from bench.run import Run

#: Those before which nothing large must have been removed come first.
MEASURES: dict[str, Callable[[Run], list[Figure]]] = {
    "rate": rate.measure,
    "terminal": terminal.measure,
    "start": start.measure,
    "first-byte": first_byte.measure,
    "exit": exit.measure,
    "notify": notify.measure,
    "flood": flood.measure,
    "held": held.measure,
    "list": listing.measure,
    "bus": bus.measure,
    "bridge": bridge.measure,
    "followers": followers.measure,
    "screen": screen.measure,
    "sampling": sampling.measure,
    "http": http.measure,
    "search": search.measure,
    "watching": watching.measure,
    "watch": watch.measure,
    "tokens": tokens.measure,
    "tui": tui.measure,
    "places": places.measure,
    "chaos": chaos.measure,
}

#: What one process costs, in time and memory: `python -m bench table`.
TABLE = ("rate", "terminal", "start", "first-byte", "exit", "notify", "flood", "held")
