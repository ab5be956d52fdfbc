"""`holdfast version`."""

from __future__ import annotations

import sys

from holdfast.cli import console
from holdfast.cli.options import JSON, Verb
from holdfast.cli.versions import say_older_parts
from holdfast.client import launch
from holdfast.client.link import greet
from holdfast.errors import HoldfastError
from holdfast.paths import find_paths
from holdfast.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.wire.frames import Message

VERB = Verb(
    "version",
    synopsis=["version [--json]"],
    about="""
        Shows the version of this command. If the running daemon, or its keeper, is older, a message names it. No daemon
        is started. With --json also daemon and keeper: their versions, null where none runs.
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
    greeting = _greeting()
    if given.json:
        parts = {"daemon": greeting.get("daemon"), "keeper": greeting.get("keeper")}
        console.out_json({"version": VERSION, "python": sys.version.split()[0], **parts})
    else:
        console.out(f"holdfast {VERSION}")
    say_older_parts(greeting)
    return 0


def _greeting() -> Message:
    """What the daemon says of itself; nothing where none runs, or it does not answer."""
    try:
        sock = launch.find(find_paths())
        if sock is None:
            return {}
        link = greet(sock, None)
    except HoldfastError:
        return {}
    link.close()
    return link.daemon
