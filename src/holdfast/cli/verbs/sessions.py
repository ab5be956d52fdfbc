"""`holdfast sessions`."""

from __future__ import annotations

import time

from holdfast.cli import console
from holdfast.cli.options import JSON, Verb
from holdfast.client.sync import connect
from holdfast.model.units import age_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.wire.frames import Message

VERB = Verb(
    "sessions",
    synopsis=["sessions [--json]"],
    summary="list sessions",
    about="""
        Lists the sessions that have processes, or had some that are still remembered. The one that started something
        last comes last.

        For people a table: the session, how many of its processes run and how many have ended, the time since the
        first and since the last of them was started. With --json an array of objects: session, running, ended,
        first_at, last_at (seconds since 1970).
    """,
    options=[JSON],
    exits=[("0", "Listed, also when there is nothing to list.")],
    examples=[
        ("Who has something running", "holdfast sessions"),
        ("Those that have nothing running", "holdfast sessions --json | jq -r '.[] | select(.running == 0).session'"),
    ],
)

_HEAD = ("SESSION", "RUNNING", "ENDED", "FIRST", "LAST")


def run(given: Given) -> int:
    given.only()
    with connect() as client:
        sessions = client.sessions()
    if given.json:
        console.out_json(sessions)
    else:
        now = time.time()
        console.out(console.table(_HEAD, [_row(session, now) for session in sessions]))
    return 0


def _row(told: Message, now: float) -> tuple[str, ...]:
    ages = [age_text(now - told[key]) for key in ("first_at", "last_at")]
    return (told["session"], str(told["running"]), str(told["ended"]), *ages)
