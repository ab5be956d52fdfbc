"""`holdfast rm`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "rm",
    synopsis=["rm ID… [--json]", "rm --all [--json]"],
    about="""
        Deletes ended processes: record, output and exit code. If one of them still runs, none is deleted: end it first
        with holdfast kill.

        With --all it deletes all ended processes, of every session. It keeps those whose children still write output.

        Without this, ended processes are deleted after the retention time.
    """,
    options=[Option("--all", help="All ended processes, of every session."), JSON],
    exits=[("0", "Deleted.")],
    examples=[
        ("Delete one", "holdfast rm proc_0123456789ab"),
        ("Delete all ended processes", "holdfast prune"),
        ("Delete all that needed SIGKILL", "holdfast rm $(holdfast ps -a --json | jq -r '.[]|select(.forced)|.id')"),
    ],
)


def run(given: Given) -> int:
    if given.all and given.words:
        raise BadValue("rm: IDs and --all exclude each other", next="give one of them")
    names = [] if given.all else given.some("ID")
    with connect() as client:
        removed = client.remove(*names, all=given.all)
    if given.json:
        console.out_json({"removed": removed})
    else:
        for process_id in removed:
            console.out(process_id)
    return 0
