"""`holdfast version`."""

from __future__ import annotations

import sys

from holdfast.cli import console
from holdfast.cli.options import JSON, Verb
from holdfast.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "version",
    synopsis=["version [--json]"],
    about="""
        Shows the version of this command. holdfast daemon status shows that of the running daemon.
    """,
    options=[JSON],
    exits=[("0", "Shown.")],
    examples=[
        ("For users", "holdfast version"),
        ("For programs", "holdfast version --json | jq -r .version"),
    ],
)


def run(given: Given) -> int:
    given.only()
    if given.json:
        console.out_json({"version": VERSION, "python": sys.version.split()[0]})
    else:
        console.out(f"holdfast {VERSION}")
    return 0
