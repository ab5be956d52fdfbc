"""`holdfast inbox`."""

from __future__ import annotations

import sys

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb, count
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
        Shows the notifications of a session that are not acknowledged, oldest first: ends of its processes, lines that
        they were watched for, progress, that they are ready, have stalled or passed their deadline. They are kept on
        disk, also while no client is connected, and are shown again until they are acknowledged.

        With --wait it waits for something when there is nothing, and ends as soon as there is; when the time is over,
        it ends without output.

        With --ack what was printed is acknowledged once it is printed, and never delivered again. Of several callers
        with --ack, each notification goes to one. Without, looking changes nothing: see holdfast ack.

        Each is one line: the process, and what happened to it. holdfast logs ID shows the output.
        With --json an array of notification objects: id, key (the same for the same notification, also after
        restarts), kind, process, session, origin, at, text (a block for a model, in which the output is quoted),
        summary (the line), data.
    """,
    options=[
        Option("--session", metavar="S", help="Of session S. Default: $HOLDFAST_SESSION, else default."),
        Option(
            "--wait",
            metavar="S",
            convert=parse_seconds,
            help="Wait for something, S seconds at most (or 500ms, 10m, 2h). Default: not at all.",
        ),
        Option("--ack", help="Acknowledge what was printed."),
        Option("--limit", metavar="N", convert=count, help="The oldest N at most. Default: 1000."),
        JSON,
    ],
    exits=[("0", "Shown, also when there is nothing.")],
    examples=[
        ("What there is to know", "holdfast inbox"),
        ("Take the next notification, up to an hour from now", "holdfast inbox --wait 1h --limit 1 --ack --json"),
    ],
)

_NAMED = 3


def run(given: Given) -> int:
    given.only()
    if given.limit == 0:
        raise BadValue("inbox: --limit 0 shows nothing", next="give 1 or more")
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
