"""`holdfast attach`."""

from __future__ import annotations

from holdfast.cli import chosen
from holdfast.cli.options import Option, Verb
from holdfast.cli.terminal import attached
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "attach",
    synopsis=["attach [ID] [--detach-key KEY]"],
    about="""
        Connects this terminal to a process that was started with -t: it shows the last lines and new output, and sends
        every key to the process, also ^C. The terminal of the process gets the size of this one.

        The detach key leaves the process running. When the process ends, attach exits with its exit code. This terminal
        is always restored.

        Without ID it takes the only process that runs, else the last one that was started, and says which on stderr. If
        $HOLDFAST_SESSION is set, only processes of that session count.
    """,
    options=[
        Option(
            "--detach-key",
            metavar="KEY",
            help="The key that detaches: ctrl-a to ctrl-z, ctrl-], ctrl-\\, …, or none. Default: ctrl-].",
        ),
    ],
    exits=[("0", "Detached."), ("N", "The command ended with this exit code.")],
    examples=[
        ("Type a password", "holdfast attach deploy"),
        ("Detach with ctrl-q", "holdfast attach --detach-key ctrl-q editor"),
    ],
)


def run(given: Given) -> int:
    key = attached.parse_key(given.detach_key)
    attached.check_terminal()
    with connect() as client:
        process = client.inspect(chosen.one(client, given, pty=True))
        attached.check_process(process)
        shown, offset = attached.replay(client, process)
        return attached.attach(client, process, key, offset, shown=shown)
