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
        Deletes ended processes: record, output and exit code. If one of them still runs, none is deleted: end it first
        with holdfast kill.

        Without this, ended processes are deleted after the retention time.
    """,
    options=[JSON],
    exits=[("0", "Deleted.")],
    examples=[
        ("Delete one", "holdfast rm proc_0123456789ab"),
        ("Delete all that needed SIGKILL", "holdfast rm $(holdfast ps -a --json | jq -r '.[]|select(.forced)|.id')"),
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
