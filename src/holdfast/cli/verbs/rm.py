"""`holdfast rm`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Verb
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "rm",
    synopsis=["rm ID… [--json]"],
    about="""
        Forgets processes that have ended: their record, their output and their exit code. One that still runs is
        refused, and then none of them is forgotten: end it first with holdfast kill.

        Without this, ended processes are kept for the retention time.
    """,
    options=[JSON],
    exits=[("0", "Forgotten.")],
    examples=[
        ("Forget one", "holdfast rm proc_0123456789ab"),
        ("Forget all that were killed", "holdfast rm $(holdfast ps -a --json | jq -r '.[]|select(.forced)|.id')"),
    ],
)


def run(given: Given) -> int:
    names = given.some("ID")
    with connect() as client:
        removed = client.remove(*names)
    if given.json:
        console.out_json({"removed": removed})
    else:
        for process_id in removed:
            console.out(process_id)
    return 0
