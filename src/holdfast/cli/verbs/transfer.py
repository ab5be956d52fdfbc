"""`holdfast transfer`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Verb
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "transfer",
    synopsis=["transfer ID S [--json]"],
    about="""
        Gives a process, running or ended, to session S: it belongs to S from now on, and its pending notifications are
        delivered to S alone. With --json the process object.
    """,
    options=[JSON],
    exits=[("0", "It belongs to S, also if it did before.")],
    examples=[
        ("Let another conversation go on with it", "holdfast transfer web chat-43"),
        ("Take one over", "holdfast transfer proc_6c11 $HOLDFAST_SESSION"),
    ],
)


def run(given: Given) -> int:
    process_id, session = given.only("ID", "S")
    with connect() as client:
        process = client.transfer(process_id, session)
    console.out_json(process.to_json()) if given.json else console.say(f"{process.id} belongs to {process.session}")
    return 0
