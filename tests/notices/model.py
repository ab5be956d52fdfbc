"""The delivery of one completion as a small machine: who knows what, and which steps are possible from there.

It is small enough that every state it can reach can be looked at. docs/delivery.md says the same in a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

Row = Literal["none", "pending", "claimed", "over"]
Waiter = Literal["idle", "asks", "has it", "gone", "gone with it"]
Reader = Literal["idle", "shown", "acks", "acked"]


class State(NamedTuple):
    row: Row = "none"
    """As it is on disk."""
    queued: Row | None = None
    """As it is to be: the disk has not caught up."""
    is_up: bool = True
    is_earlier: bool = False
    """Held back by the daemon because the one before it had claimed it."""
    waiter: Waiter = "idle"
    """A client of the owner that waits for the end."""
    is_asked: bool = False
    """Its question is with the daemon."""
    is_sent: bool = False
    """The answer is in the socket."""
    is_telling: bool = False
    """The daemon has sent it and has not heard that it came."""
    reader: Reader = "idle"
    """Another client of the owner, that reads the inbox and acknowledges."""
    crashes: int = 0
    is_doubled: bool = False
    """The reader was shown it when the waiter had it."""


def steps(now: State, most_crashes: int = 2, comes_back: bool = True) -> Iterator[tuple[str, State]]:
    """What can happen next. `comes_back`: a waiter that lives speaks to the next daemon before that gives it up."""
    if now.is_up:
        yield from _of_the_daemon(now, comes_back)
        yield from _of_the_reader(now)
    yield from _of_the_waiter(now)
    yield from _mishaps(now, most_crashes)


def _of_the_daemon(now: State, comes_back: bool) -> Iterator[tuple[str, State]]:
    if now.queued is not None:
        yield "the disk commits", now._replace(row=now.queued, queued=None)
    elif now.row == "none":
        yield "the process ends", now._replace(queued="claimed" if now.is_asked else "pending")
    elif now.is_asked and now.row == "pending":
        yield "the news is claimed for a wait", now._replace(queued="claimed")
    elif now.is_asked and now.row == "claimed":
        answered = now._replace(is_asked=False, is_sent=True, is_telling=True, is_earlier=False)
        yield "the answer is sent", answered
    elif now.is_asked:
        yield "an answer tells what was told before", now._replace(is_asked=False, waiter="gone")
    elif now.row == "claimed" and not now.is_telling and not now.is_earlier:
        yield "the claim is dropped", now._replace(queued="pending")
    if now.is_earlier and (now.waiter in ("idle", "gone", "gone with it") or not comes_back):
        yield "nobody came back", now._replace(is_earlier=False)


def _of_the_waiter(now: State) -> Iterator[tuple[str, State]]:
    if now.waiter == "idle" and now.is_up:
        yield "the owner waits", now._replace(waiter="asks")
    if now.waiter == "asks" and now.is_up and not now.is_asked and not now.is_sent:
        yield "its question is there", now._replace(is_asked=True)
    if now.is_sent and now.waiter == "asks":
        yield "the answer comes", now._replace(is_sent=False, waiter="has it")
    if now.waiter == "has it" and now.is_up and now.queued is None and now.row != "over":
        heard = now._replace(queued="over", is_telling=False, is_earlier=False)
        yield "the daemon hears that it came", heard


def _of_the_reader(now: State) -> Iterator[tuple[str, State]]:
    is_held = now.is_asked or now.is_telling or now.is_earlier or now.queued == "over"
    if now.reader == "idle" and now.row in ("pending", "claimed") and not is_held:
        yield "the inbox shows it", now._replace(reader="shown", is_doubled=now.waiter == "has it")
    if now.reader == "shown" and now.queued is None:
        yield "it is acknowledged", now._replace(reader="acks", queued="over")
    if now.reader == "acks" and now.queued is None:
        asks_again = now._replace(queued="over")
        yield "that is answered", now._replace(reader="acked") if now.row == "over" else asks_again


def _mishaps(now: State, most: int) -> Iterator[tuple[str, State]]:
    if now.is_up and now.crashes < most:
        forgotten = now._replace(queued=None, is_earlier=False, is_asked=False, is_telling=False)
        yield "the daemon dies", forgotten._replace(is_up=False, crashes=now.crashes + 1)
    if not now.is_up:
        yield "the daemon starts", now._replace(is_up=True, is_earlier=now.row == "claimed")
    if now.waiter in ("idle", "asks", "has it"):
        gone: Waiter = "gone with it" if now.waiter == "has it" else "gone"
        yield "the waiter dies", now._replace(waiter=gone, is_asked=False, is_sent=False, is_telling=False)


def reachable(**choices: bool) -> dict[State, dict[str, State]]:
    """Every state there can be, with what can follow it."""
    found: dict[State, dict[str, State]] = {}
    new = [State()]
    while new:
        state = new.pop()
        if state not in found:
            found[state] = dict(steps(state, **choices))
            new += found[state].values()
    return found
