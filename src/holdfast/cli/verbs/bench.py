"""`holdfast bench`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.errors import Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.options import Given

VERB = Verb(
    "bench",
    synopsis=["bench [--peers] [--quick] [--dir DIR] [--json]"],
    about="""
        Measures in a temporary instance: the time until a start is reported, until an exit is reported, and of a list;
        whether a command and its exit code survive SIGKILL of all processes of holdfast; and whether killing a command
        also ends children that called setsid.

        With --peers it measures hermes-agent 0.19.0, supervisord, tmux, task-spooler and pm2 in the same way. Missing
        ones are installed: Python and npm packages into the cache directory, Debian packages as root. Those that cannot
        be installed are named and left out. Each time is also given as a multiple of holdfast's: of the command line
        for programs with a command line client, of the Python client for the others.

        With --json an object with rows (times in seconds) and missing.

        The measuring code is not in the installed package: this needs a clone of the source.
    """,
    options=[
        Option("--peers", help="Also measure the other programs, and install missing ones."),
        Option("--quick", help="Few rounds, to see that it works; the figures are inexact."),
        Option("--dir", metavar="DIR", help="Where to install the others. Default: ~/.cache/holdfast-bench."),
        JSON,
    ],
    exits=[("0", "Measured."), ("125", "This is not a clone of the source.")],
    examples=[
        ("A short test", "holdfast bench --quick"),
        ("Compare with the other programs", "holdfast bench --peers"),
    ],
)


def run(given: Given) -> int:
    given.only()
    bench = _bench()
    rows, missing = bench.run(given.peers, given.quick, given.dir)
    if given.json:
        console.out_json({"rows": [bench.as_json(row, rows) for row in rows], "missing": missing})
    else:
        console.out(console.table(bench.HEAD, bench.table(rows), lambda row, column: ""))
    for name, why in missing.items():
        console.say(f"without {name}: {why}")
    return 0


def _bench() -> Any:
    """`bench.compare.run` of this clone. Raises Unsupported in an installed package."""
    import sys

    from holdfast.extras import clone

    root = clone()
    if root is None:
        raise Unsupported(
            "holdfast bench needs a clone of the source: the installed package does not contain the measuring code",
            next="in a clone: scripts/setup && .venv/bin/holdfast bench",
        )
    sys.path.insert(0, root)
    return __import__("bench.compare.run", fromlist=["run"])
