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
        Measures, in an instance of its own that is gone afterwards: the time from a start until it is known, from an
        exit until it is known, and of a list; whether a command survives SIGKILL of everything that holds it and its
        exit code is known then; and whether killing a command ends what it started in a session of its own.

        With --peers the same is measured of hermes-agent 0.19.0, supervisord, tmux, task-spooler and pm2. Those that
        are not there are installed: Python and npm packages into the cache directory, Debian packages when root. What
        cannot be installed is named and left out. After each time it says how many times ours it is: those with a
        client program beside our command line, the others beside our Python client.

        With --json an object with rows (times in seconds) and missing.

        The measuring code is not part of the installed package: this works in a clone of the source.
    """,
    options=[
        Option("--peers", help="Measure the others, too, and install them if need be."),
        Option("--quick", help="Few rounds: see that it works; the figures mean little."),
        Option("--dir", metavar="DIR", help="Where the others are installed. Default: ~/.cache/holdfast-bench."),
        JSON,
    ],
    exits=[("0", "Measured."), ("125", "This is not a clone of the source.")],
    examples=[
        ("Is it well here?", "holdfast bench --quick"),
        ("Side by side with the others", "holdfast bench --peers"),
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
    """`bench.compare.run` of the clone that this runs from. Raises Unsupported where it is an installed package."""
    import sys

    from holdfast.extras import clone

    root = clone()
    if root is None:
        raise Unsupported(
            "holdfast bench needs a clone of the source: the installed package does not hold what it measures with",
            next="in a clone: scripts/setup && .venv/bin/holdfast bench",
        )
    sys.path.insert(0, root)
    return __import__("bench.compare.run", fromlist=["run"])
