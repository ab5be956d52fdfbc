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
    page_lighthouse,
    page_log,
    page_table,
    page_terminal,
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
    "page-log": page_log.measure,
    "page-table": page_table.measure,
    "page-terminal": page_terminal.measure,
    "page-lighthouse": page_lighthouse.measure,
}

#: Measures that are run together, each group with a table of its own in the documentation: what one process costs, in
#: time and memory; what the dashboard does in a browser.
GROUPS = {
    "table": ("rate", "terminal", "start", "first-byte", "exit", "notify", "flood", "held"),
    "dashboard": ("page-log", "page-table", "page-terminal", "page-lighthouse"),
}

#: What is run where nothing is named; a browser is not needed for it.
USUAL = tuple(name for name in MEASURES if name not in GROUPS["dashboard"])
