"""`holdfast screen`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "screen",
    synopsis=["screen ID [--ansi] [--json]"],
    about="""
        Shows what is on the terminal of a process that was started with -t; of an ended one, what was there last. Lines
        below the last that is not empty are left out.

        With --json one object: id, lines, cursor (row and col from 0, visible), cols, rows, title, alternate (whether
        the alternate screen is on), at (how far the output was read), gap (null, or the byte before which output was
        left out because it is no longer kept or was too much at once).
    """,
    options=[Option("--ansi", help="With colours and styles, as escape sequences."), JSON],
    exits=[("0", "Shown.")],
    examples=[
        ("What the editor shows", "holdfast screen editor"),
        ("Where the cursor is", "holdfast screen --json editor | jq .cursor"),
    ],
)


def run(given: Given) -> int:
    (process_id,) = given.only("ID")
    with connect() as client:
        screen = client.screen(process_id, ansi=given.ansi)
    if given.json:
        console.out_json(screen.to_json())
        return 0
    console.out(screen.text)
    if screen.gap is not None:
        console.say(f"output before byte {screen.gap} was left out: what was drawn there may be missing")
    return 0
