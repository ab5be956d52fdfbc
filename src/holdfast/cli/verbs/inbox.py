"""`holdfast inbox`."""

from __future__ import annotations

import sys

from holdfast.cli import console
from holdfast.cli.options import JSON, SESSION, Option, Verb, count
from holdfast.client.sync import connect
from holdfast.errors import BadValue
from holdfast.model.units import parse_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.notification import Notification

VERB = Verb(
    "inbox",
    synopsis=["inbox [--session S] [--wait S] [--ack] [--limit N] [--json]"],
    about="""
        Shows the notifications of a session that are not acknowledged, oldest first: ends of its processes, matches of
        watches, progress, and that a process is ready, has stalled, needs input or passed its deadline. They are kept
        on disk, and are shown again until they are acknowledged.

        With --wait it waits if there is none, and returns when one comes; after S seconds it returns without output.

        With --ack the printed notifications are acknowledged, and never delivered again. Several callers with --ack
        never get the same notification. Without --ack nothing changes: see holdfast ack.

        Each is one line: the process and what happened. holdfast logs ID shows the output. With --json an array of
        notification objects: id, key (the same for the same notification, for deduplication), kind, process, session,
        origin, at, text (a block for a model, with output quoted), summary (the line), data.
    """,
    options=[
        SESSION,
        Option(
            "--wait",
            metavar="S",
            convert=parse_seconds,
            help="Wait at most S seconds (or 500ms, 10m, 2h) if there is none. Default: do not wait.",
        ),
        Option("--ack", help="Acknowledge the printed notifications."),
        Option("--limit", metavar="N", convert=count, help="At most N, the oldest. Default: 1000."),
        JSON,
    ],
    exits=[("0", "Shown, also if there is none.")],
    examples=[
        ("Pending notifications", "holdfast inbox"),
        ("Wait up to an hour for the next one, and acknowledge it", "holdfast inbox --wait 1h --limit 1 --ack --json"),
    ],
)

_NAMED = 3


def run(given: Given) -> int:
    given.only()
    if given.limit == 0:
        raise BadValue("inbox: --limit must be 1 or more", next=given.usage)
    with connect(given.session) as client:
        found = client.inbox(wait=given.wait or 0.0, limit=given.limit, take=given.ack)
        _show(found, given.json)
        if found and given.ack:
            sys.stdout.flush()
            client.ack(*found)
        elif found and not given.json:
            _say_how(found)
    return 0


def _show(found: list[Notification], as_json: bool) -> None:
    if as_json:
        console.out_json([one.to_json() for one in found])
        return
    for one in found:
        console.out(console.visible_lines(f"{one.process or '-'}  {one.summary}"))


def _say_how(found: list[Notification]) -> None:
    ids = " ".join(one.id for one in found[:_NAMED])
    how = f"holdfast ack {ids}" if len(found) <= _NAMED else "holdfast inbox --ack"
    console.say(f"{len(found)} to be acknowledged: {how}")
