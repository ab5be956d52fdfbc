"""`holdfast restart`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.model.units import parse_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "restart",
    synopsis=["restart ID… [--grace S] [--json]"],
    about="""
        A process that runs is ended first, with SIGTERM and after the grace period with SIGKILL, with everything that
        it started; one that waits for its next run gets it now; one that has ended is simply run again. Id, name and
        log stay: what it writes follows what it wrote before. There are never two of it, however many ask at once.

        Returns when it runs. When it cannot be started any more, it stays ended, and the error says why.
    """,
    options=[
        Option(
            "--grace",
            metavar="S",
            convert=parse_seconds,
            help="Seconds between SIGTERM and SIGKILL. Default: 10, or as configured.",
        ),
        JSON,
    ],
    exits=[("0", "All of them run again."), ("126", "It cannot be executed."), ("127", "It was not found.")],
    examples=[
        ("After a change of its configuration", "holdfast restart web"),
        ("And see what it says from now on", "holdfast restart web && holdfast logs -f -n 0 web"),
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
            console.out(process.id)
    return 0
