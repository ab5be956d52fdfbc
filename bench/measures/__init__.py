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
    sampling,
    screen,
    search,
    start,
    tokens,
    watch,
    watching,
)
from bench.run import Run

MEASURES: dict[str, Callable[[Run], list[Figure]]] = {
    "start": start.measure,
    "first-byte": first_byte.measure,
    "exit": exit.measure,
    "flood": flood.measure,
    "held": held.measure,
    "list": listing.measure,
    "notify": notify.measure,
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
    "chaos": chaos.measure,
}
