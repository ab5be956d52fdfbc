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
        Moves a running or ended process to session S, with its pending notifications. With --json the process object.
    """,
    options=[JSON],
    exits=[("0", "It belongs to S, also if it did before.")],
    examples=[
        ("Move it to another conversation", "holdfast transfer web chat-43"),
        ("Move it to this session", "holdfast transfer proc_6c11 $HOLDFAST_SESSION"),
    ],
)


def run(given: Given) -> int:
    process_id, session = given.only("ID", "S")
    with connect() as client:
        process = client.transfer(process_id, session)
    console.out_json(process.to_json()) if given.json else console.say(f"{process.id} belongs to {process.session}")
    return 0
