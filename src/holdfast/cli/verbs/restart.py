"""`holdfast restart`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import GRACE, JSON, Verb
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "restart",
    synopsis=["restart ID… [--grace S] [--json]"],
    about="""
        Runs each process again with the same command and options. A running one is ended first, with all its children:
        SIGTERM, then, after the grace period, SIGKILL. Id and name stay, and new output is appended to the log. It
        never runs twice at the same time, also if several callers restart it at once.

        A process that was started in a queue runs again at once, also if the queue is paused or full.

        It returns when the process runs. If it cannot be started, it stays ended and the error says why.
    """,
    options=[GRACE, JSON],
    exits=[("0", "All run again."), ("126", "The command cannot be executed."), ("127", "The command was not found.")],
    examples=[
        ("After a change of its configuration", "holdfast restart web"),
        ("Restart, then follow new output", "holdfast restart web && holdfast logs -f -n 0 web"),
    ],
)


def run(given: Given) -> int:
    names = given.some("ID")
    with connect() as client:
        processes = [client.restart(name, grace=given.grace) for name in names]
    if given.json:
        objects = [process.to_json() for process in processes]
        console.out_json(objects[0] if len(names) == 1 else objects)
    else:
        for process in processes:
            if process.queue is not None:
                console.say(f"{process.id} runs again at once: a restart does not wait in the queue {process.queue}")
            console.out(process.id)
    return 0
