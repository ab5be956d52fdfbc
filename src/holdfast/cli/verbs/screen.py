"""`holdfast screen`."""

from __future__ import annotations

from holdfast.cli import chosen, console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "screen",
    synopsis=["screen [ID] [--ansi] [--json]"],
    about="""
        Shows the rendered screen of a process that was started with -t; of an ended one, its last screen. Empty lines
        at the end are left out.

        Without ID it takes the only process that runs, else the last one that was started, and says which on stderr. If
        $HOLDFAST_SESSION is set, only processes of that session count.

        With --json one object: id, lines, cursor (row and col from 0, visible), cols, rows, title, alternate (whether
        the alternate screen is on), at (the output offset), gap (null, or the offset before which output was not drawn,
        because it is no longer kept or was too much).
    """,
    options=[Option("--ansi", help="With colours and styles, as escape sequences."), JSON],
    exits=[("0", "Shown.")],
    examples=[
        ("The screen of an editor", "holdfast screen editor"),
        ("The cursor, for a program", "holdfast screen --json editor | jq .cursor"),
    ],
)


def run(given: Given) -> int:
    with connect() as client:
        screen = client.screen(chosen.one(client, given, pty=True), ansi=given.ansi)
    if given.json:
        console.out_json(screen.to_json())
        return 0
    console.out(screen.text)
    if screen.gap is not None:
        console.say(f"output before byte {screen.gap} was not drawn: parts of the screen may be missing")
    return 0
