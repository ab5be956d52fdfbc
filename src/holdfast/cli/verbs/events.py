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
        raise BadValue(f"{text[:40]!r} is no number of an event", next="take `seq` of the last event you have seen")
    return int(text)


VERB = Verb(
    "events",
    synopsis=["events [PATTERN] [-f] [--since SEQ] [--json]"],
    about="""
        Shows the events that are kept, oldest first. PATTERN chooses topics: words joined by dots, where * stands for
        one word and ** for any number of them. Default: **, everything.

        Every event that is kept has a number, seq, greater than those before it. With --since SEQ, only what came after
        that one is shown: a reader that goes on from the last number that it has seen misses nothing and sees nothing
        twice. With -f, events are shown as they happen, also over crashes of the daemon; without --since, from now on.
    """,
    options=[
        Option("-f", "--follow", help="Go on showing events as they happen."),
        Option("--since", metavar="SEQ", convert=parse_number, help="Only what came after the event with this number."),
        JSON,
    ],
    exits=[("0", "All that was there has been shown.")],
    examples=[
        ("Who ended, and how", "holdfast events process.ended"),
        ("Everything, for a program", "holdfast events -f --since 0 --json"),
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
        at = "??:??:??"  # of a program that says what it likes
    shown = {"seq", "type", "ts", "src"}
    fields = " ".join(
        f"{key}={_short(value)}" for key, value in event.items() if key not in shown and value is not None
    )
    return console.visible(f"{event.get('seq') or '-':>6} {at} {event.get('type')} {fields}")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
