"""`holdfast interrupt`."""

from __future__ import annotations

import time

from holdfast.cli import console
from holdfast.cli.options import JSON, SESSION, Verb
from holdfast.client.sync import connect
from holdfast.model.foreground_labels import is_foreground

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.process import Process

VERB = Verb(
    "interrupt",
    synopsis=["interrupt [--session S] [--json]"],
    about="""
        Interrupts the tool calls of a session: a foreground command ends with its process tree, and a wait returns,
        both within two seconds. Background processes go on. If no call is in progress, nothing happens.

        It prints the ids of the background processes, one per line. With --json an object: session, seq (of the event
        session.interrupt), running (process objects).
    """,
    options=[SESSION, JSON],
    exits=[("0", "The event was published.")],
    examples=[
        ("Interrupt an agent", "holdfast interrupt --session chat-42"),
        ("End its background processes, too", "holdfast kill --session chat-42"),
    ],
)


def run(given: Given) -> int:
    given.only()
    with connect(given.session) as client:
        seq = client.publish("session.interrupt", {"session": client.session, "by": "holdfast interrupt"})
        running = [one for one in client.ps(session=client.session, used=False) if not _is_foreground(one)]
    if given.json:
        shown = [process.to_json() for process in running]
        console.out_json({"session": client.session, "seq": seq, "running": shown})
    else:
        for process in running:
            console.out(process.id)
    return 0


def _is_foreground(process: Process) -> bool:
    """Whether the terminal tool waits for it, and will end it."""
    return is_foreground(process.labels, time.time() - (process.started_at or 0.0))
