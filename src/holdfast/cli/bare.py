"""`holdfast` alone: what runs now, and the verbs that are used most. It starts no daemon."""

from __future__ import annotations

import os
import sys

from holdfast.cli import console
from holdfast.client import launch
from holdfast.errors import HoldfastError
from holdfast.paths import find_paths

_HELP = """\
  holdfast run -d -- COMMAND     run a command in the background; without -d in the foreground
  holdfast ps -a                 list running and ended processes
  holdfast logs -f [ID]          show the output, and follow it
  holdfast wait ID               wait for the end; exits with its exit code
  holdfast kill ID               end it with all its children
  holdfast restart ID            run it again
  holdfast attach [ID]           connect this terminal to it (started with run -t)

All verbs: holdfast --help. One of them: holdfast VERB --help.
"""


def run() -> int:
    try:
        _show_running()
    except HoldfastError as error:
        console.say_error(error)
    sys.stdout.write(f"\n{_HELP}")
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
