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
    about="""
        Lists the sessions that have processes or pending notifications, in the order of their last start.

        The columns: session, running processes, ended processes, pending notifications, time since the last start. With
        --json an array of objects: session, running, ended, first_at, last_at, pending.
    """,
    options=[JSON],
    exits=[("0", "Listed, also if there are none.")],
    examples=[
        ("All sessions", "holdfast sessions"),
        (
            "With pending notifications",
            "holdfast sessions --json | jq -r '.[]|select(.pending > 0)|.session'",
        ),
    ],
)

_HEAD = ("SESSION", "RUNNING", "ENDED", "PENDING", "LAST")


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


def _row(session: Message, now: float) -> tuple[str, ...]:
    last = age_text(now - session["last_at"]) if session["last_at"] is not None else "-"
    counts = (str(session[name]) for name in ("running", "ended", "pending"))
    return (session["session"], *counts, last)
