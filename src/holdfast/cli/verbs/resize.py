"""`holdfast resize`."""

from __future__ import annotations

from holdfast.cli.options import Verb
from holdfast.client.sync import connect
from holdfast.model.units import parse_window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "resize",
    synopsis=["resize ID COLSxROWS"],
    about="""
        Changes the size of the terminal of a process that was started with -t; the process gets SIGWINCH. While a
        terminal is attached, the size follows that terminal.
    """,
    exits=[("0", "Done.")],
    examples=[
        ("Wider lines", "holdfast resize web 200x50"),
        ("The classic size", "holdfast resize web 80x24"),
    ],
)


def run(given: Given) -> int:
    process_id, size = given.only("ID", "COLSxROWS")
    cols, rows = parse_window(size)
    with connect() as client:
        client.resize(process_id, cols, rows)
    return 0
