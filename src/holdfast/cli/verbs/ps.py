"""`holdfast ps`."""

from __future__ import annotations

import time

from holdfast.cli import colours, console
from holdfast.cli.options import JSON, ONLY_SESSION, ONLY_TASK, Option, Verb
from holdfast.cli.outcomes import colour
from holdfast.cli.versions import say_older_parts
from holdfast.client.process import outcome
from holdfast.client.sync import connect
from holdfast.model.units import age_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.process import Process

VERB = Verb(
    "ps",
    synopsis=["ps [-a] [--session S] [--task T] [--json]"],
    about="""
        Lists running processes of all sessions, oldest first. With -a also ended ones that are still kept.

        The columns: id, name, state or how it ended, time since the start, session, bytes of output, command. A process
        that waits for input is marked (asks). With --json an array of process objects.
    """,
    options=[Option("-a", "--all", help="Also ended processes."), ONLY_SESSION, ONLY_TASK, JSON],
    exits=[("0", "Listed, also if there are none.")],
    examples=[
        ("Running processes", "holdfast ps"),
        ("The ids of failed processes", "holdfast ps -a --json | jq -r '.[] | select(.exit_code > 0) | .id'"),
    ],
)

_HEAD = ("ID", "NAME", "STATUS", "AGE", "SESSION", "OUTPUT", "COMMAND")


def run(given: Given) -> int:
    given.only()
    with connect() as client:
        processes = client.ps(all=given.all, session=given.session, task=given.task, used=given.json)
        say_older_parts(client.greeting)
    if given.json:
        console.out_json([process.to_json() for process in processes])
    else:
        now = time.time()
        rows = [_row(process, now) for process in processes]
        console.out(console.table(_HEAD, rows, lambda row, column: _colour(processes[row], column)))
    return 0


def _colour(process: Process, column: int) -> str:
    return colour(process) if _HEAD[column] == "STATUS" else colours.PLAIN


def _row(process: Process, now: float) -> tuple[str, ...]:
    status = outcome(process) + (" (stale)" if process.stale else "") + (" (trouble)" if process.trouble else "")
    status += " (asks)" if process.needs_input else ""
    age = age_text(now - process.started_at) if process.started_at is not None else "-"
    size = size_text(process.output_bytes or 0)
    return (process.id, process.name or "-", status, age, process.session, size, process.command)
