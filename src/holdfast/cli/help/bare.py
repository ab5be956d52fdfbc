"""`holdfast` alone: what runs now, and the verbs that are used most. It starts no daemon."""

from __future__ import annotations

import os
import sys

from holdfast.cli import console
from holdfast.cli.help import usage
from holdfast.client import launch
from holdfast.errors import HoldfastError
from holdfast.paths import find_paths

_VERBS = (
    ("run -d -- COMMAND", "run a command in the background; without -d in the foreground"),
    ("ps -a", "list running and ended processes"),
    ("logs -f [ID]", "show the output, and follow it"),
    ("wait ID", "wait for the end; exits with its exit code"),
    ("kill ID", "end it with all its children"),
    ("restart ID", "run it again"),
    ("attach [ID]", "connect this terminal to it (started with run -t)"),
)
_MORE = "All verbs: holdfast --help. Of one: holdfast VERB --help."


def run() -> int:
    try:
        _show_running()
    except HoldfastError as error:
        console.say_error(error)
    verbs = usage.pairs_text([(f"  holdfast {words}", does) for words, does in _VERBS], usage.page_width())
    sys.stdout.write(f"\n{verbs}\n\n{_MORE}\n")
    return 0


def _show_running() -> None:
    if not os.environ.get("HOLDFAST_URL"):  # a daemon with an address is never started from here
        sock = launch.find(find_paths())
        if sock is None:
            console.out("No daemon runs. The first command starts it.")
            return
        sock.close()
    from holdfast.cli.options import parse
    from holdfast.cli.verbs import ps
    from holdfast.client.sync import connect

    with connect() as client:
        runs = bool(client.ps(used=False))
    ps.run(parse(ps.VERB, [])) if runs else console.out("Nothing runs now.")
