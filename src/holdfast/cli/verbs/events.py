"""`holdfast events`."""

from __future__ import annotations

import sys

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.wire.frames import Message


def parse_number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise BadValue(f"{text[:40]!r} is not an event number", next="use the seq of the last event")
    return int(text)


VERB = Verb(
    "events",
    synopsis=["events [PATTERN] [-f] [--since SEQ] [--json]"],
    about="""
        Shows the stored events, oldest first. PATTERN selects topics: words joined by dots, where * is one word and **
        any number of words. Default: **, all events.

        Every stored event has a number, seq, greater than all before it. With --since SEQ only later events are shown:
        a reader that continues from the last number misses nothing and sees nothing twice. With -f new events are shown
        as they happen, also across crashes of the daemon; without --since, only new ones.
    """,
    options=[
        Option("-f", "--follow", help="Follow: show events as they happen."),
        Option("--since", metavar="SEQ", convert=parse_number, help="Only events after this number."),
        JSON,
    ],
    exits=[("0", "Shown.")],
    examples=[
        ("Ends of processes", "holdfast events process.ended"),
        ("Follow all events, for a program", "holdfast events -f --since 0 --json"),
    ],
)


def run(given: Given) -> int:
    if len(given.words) > 1:
        raise BadValue("events: one PATTERN at most", next=given.usage)
    pattern = given.words[0] if given.words else "**"
    with connect() as client, client.events(pattern, since=given.since, follow=given.follow) as events:
        for event in events:
            console.out_json(event) if given.json else console.out(_line(event))
            if given.follow:
                sys.stdout.flush()
    return 0


def _line(event: Message) -> str:
    import time

    try:
        at = time.strftime("%H:%M:%S", time.localtime(event.get("ts")))
    except (TypeError, ValueError, OverflowError, OSError):
        at = "??:??:??"  # published by a program with any value as its time
    shown = {"seq", "type", "ts", "src"}
    fields = " ".join(
        f"{key}={_short(value)}" for key, value in event.items() if key not in shown and value is not None
    )
    return console.visible(f"{event.get('seq') or '-':>6} {at} {event.get('type')} {fields}")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
