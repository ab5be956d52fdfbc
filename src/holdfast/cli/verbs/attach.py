"""`holdfast attach`."""

from __future__ import annotations

from holdfast.cli import attached
from holdfast.cli.options import Option, Verb
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "attach",
    synopsis=["attach ID [--detach-key KEY]"],
    about="""
        Connects this terminal to that of a process started with -t: what it shows appears here, beginning with the
        last lines it wrote, and every key goes to it, ^C included. The size of its terminal follows this window.

        The detach key leaves it running. When the process ends, attach exits with its exit code. This
        terminal is always restored.
    """,
    options=[
        Option(
            "--detach-key",
            metavar="KEY",
            help="The key that detaches: ctrl-a to ctrl-z, ctrl-], ctrl-\\, …, or none. Default: ctrl-].",
        ),
    ],
    exits=[("0", "Detached."), ("N", "The command ended meanwhile, with this code.")],
    examples=[
        ("Type a password", "holdfast attach deploy"),
        ("Leave with ctrl-q", "holdfast attach --detach-key ctrl-q editor"),
    ],
)


def run(given: Given) -> int:
    (process_id,) = given.only("ID")
    key = attached.parse_key(given.detach_key)
    attached.check_terminal()
    with connect() as client:
        process = client.inspect(process_id)
        attached.check_process(process)
        shown, offset = attached.replay(client, process)
        return attached.attach(client, process, key, offset, shown=shown)
