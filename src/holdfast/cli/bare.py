"""`holdfast` alone: what runs now, and the verbs that are used most. It starts no daemon."""

from __future__ import annotations

import os
import sys

from holdfast import light_json
from holdfast.cli import console, help
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
_LONGEST_STATE = 1024
#: Of the fields behind the name in /proc/PID/stat.
_START_TIME = 19
_MORE = "All verbs: holdfast --help. Of one: holdfast VERB --help."


def run() -> int:
    try:
        _show_running()
    except HoldfastError as error:
        console.say_error(error)
    verbs = help.pairs_text([(f"  holdfast {words}", does) for words, does in _VERBS], help.page_width())
    sys.stdout.write(f"\n{verbs}\n\n{_MORE}\n")
    return 0


def _count_alive(directory: str) -> int:
    """The commands that run, by the files of the keeper: a daemon is not needed to read them."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        names = os.listdir(directory)
    except OSError:
        return 0
    return sum(_is_alive(f"{directory}/{name}/state", boot) for name in names)


def _is_alive(path: str, boot: str) -> bool:
    try:
        with open(path, "rb") as file:
            born = light_json.loads(file.readline(_LONGEST_STATE).decode())
        if not isinstance(born, dict) or born.get("boot") != boot:
            return False
        with open(f"/proc/{int(born['pid'])}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
        return fields[0] not in (b"Z", b"X") and int(fields[_START_TIME]) == born["start"]
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return False


def _show_running() -> None:
    if not os.environ.get("HOLDFAST_URL"):  # a daemon with an address is never started from here
        sock = launch.find(find_paths())
        if sock is None:
            count = _count_alive(f"{find_paths().place}/live")
            go_on = f"{count} process{'' if count == 1 else 'es'} go{'es' if count == 1 else ''} on"
            state = f"The daemon is stopped; {go_on}" if count else "No daemon runs"
            console.out(f"{state}. The first command starts it.")
            return
        sock.close()
    from holdfast.cli.options import parse
    from holdfast.cli.verbs import ps
    from holdfast.client.sync import connect

    with connect() as client:
        runs = bool(client.ps(used=False))
    ps.run(parse(ps.VERB, [])) if runs else console.out("Nothing runs now.")
