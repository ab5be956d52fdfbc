"""`holdfast run`."""

from __future__ import annotations

import os

from holdfast.cli import console
from holdfast.cli.options import Verb
from holdfast.cli.run_options import OPTIONS, RUN_NAMES
from holdfast.client.sync import connect
from holdfast.errors import BadValue
from holdfast.model.units import LARGEST_WINDOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.options import Given
    from holdfast.client.field_types import RunOptions
    from holdfast.client.process import Process
    from holdfast.client.sync import Client


_READY_BY = ("ready_log", "ready_port", "ready_http", "ready_uptime")


VERB = Verb(
    "run",
    synopsis=["run [OPTIONS] [--] COMMAND [ARGUMENT…]", "run [OPTIONS] -c TEXT"],
    about="""
        Runs COMMAND without a shell, or with -c TEXT with the shell. The command gets the login environment plus this
        environment, this directory and this umask. Options end at the first word that is not an option.

        In the foreground it shows the output, passes on SIGINT (^C) and SIGTERM, and exits with the exit code of the
        command. A second ^C within two seconds kills the command with all its children. With --restart the first ^C
        ends it for good. If holdfast itself is killed, the command goes on. With -t on a terminal, this terminal is
        attached: see holdfast attach.

        The session is notified of the end and of matches of watches: see holdfast inbox. It is not notified of an end
        that it has seen here in the foreground.

        With -d it returns as soon as the command runs, and prints its id (with --json the process object). In the
        foreground, --json prints a line for each piece of output (stream, offset, text), and the process object last.
    """,
    options=OPTIONS,
    exits=[
        ("N", "The exit code of the command; with -d, 0 once it runs."),
        ("120", "It ended; its exit code is unknown."),
        ("126", "The command cannot be executed."),
        ("127", "The command was not found."),
        ("128+N", "The command was ended by signal N."),
    ],
    examples=[
        ("Build in the background, and wait later", "id=$(holdfast run -d -- make -j8); holdfast wait $id"),
        ("Start a server, return when it is ready", "holdfast run -d --wait-ready --ready-port 3000 -c 'npm run dev'"),
        ("Be notified when a build fails", "holdfast run -d --notify=failure make; holdfast inbox --wait 1h --ack"),
        ("A server with a name, for a day at most", "holdfast run -d --name web --deadline 1d -c 'npm run dev'"),
    ],
    greedy=True,
)  # fmt: skip


def run(given: Given) -> int:
    command = _command(given)
    _check(given)
    attaches = _attaches(given)
    if attaches:
        from holdfast.cli import attached

        key = attached.parse_key(given.detach_key)
    with connect(given.session) as client:
        process = client.run(command, **_options(given, attaches))
        for note in process.notes:
            console.say(note)
        if given.on_boot:
            _say_if_not_at_login()
        if given.wait_ready:
            return _until_ready(client, process, given)
        if given.detach:
            console.out_json(process.to_json()) if given.json else console.out(process.id)
            return 0
        if attaches:
            return attached.attach(client, process, key, offset=0, accepted=0, consumes=True)
        return _foreground(client, process, given)


def _say_if_not_at_login() -> None:
    from holdfast.cli.verbs import service

    if not service.is_installed():
        console.say(
            "after a boot it comes back with the first call. Next, to start it at login: holdfast service install"
        )


def _until_ready(client: Client, process: Process, given: Given) -> int:
    from holdfast.cli.verbs import wait

    if not given.json:
        console.out(process.id)
    waited = client.wait_for([process.id], until="ready")
    if given.json:
        console.out_json(waited.processes[0].to_json() if waited.processes else process.to_json())
    wait.report(waited, "ready")
    return wait.code(waited, False, "ready")


def _foreground(client: Client, process: Process, given: Given) -> int:
    from holdfast.cli import foreground

    if not given.json:
        return foreground.watch(client, process, given.stdin)
    from holdfast.cli.pieces import JsonPieces

    pieces = JsonPieces(raw=False)
    code = foreground.watch(client, process, given.stdin, pieces.show)
    pieces.close()
    console.out_json(client.inspect(process.id).to_json())
    return code


def _command(given: Given) -> str | Sequence[str]:
    text: str | None = given.c
    if text is not None and given.words:
        raise BadValue("run: either -c TEXT or a COMMAND, not both", next=given.usage)
    if text is None and not given.words:
        raise BadValue("run: the command is missing", next="holdfast run -- COMMAND, or holdfast run -c TEXT")
    return given.words if text is None else text


def _check(given: Given) -> None:
    if given.size is not None and not given.pty:
        raise BadValue("run: --size needs a terminal", next="add -t")
    if given.shell is not None and given.c is None:
        raise BadValue("run: --shell needs -c", next="give the command with -c TEXT")
    if given.deadline_action is not None and given.deadline is None:
        raise BadValue("run: --deadline-action needs --deadline", next="add --deadline S")
    if given.restart is None and (given.restart_limit is not None or given.restart_delay is not None):
        raise BadValue("run: --restart-limit and --restart-delay need --restart", next="add --restart on-failure")
    if given.wait_ready and not (given.detach and any(getattr(given, name) is not None for name in _READY_BY)):
        raise BadValue("run: --wait-ready needs -d and a --ready option", next="add -d and --ready-port N")


def _options(given: Given, attaches: bool) -> RunOptions:
    options = {name: getattr(given, key) for key, name in RUN_NAMES.items()}
    options |= {name: value or None for name, value in options.items() if isinstance(value, list)}
    size = given.size or (_terminal_size() if given.pty else None)
    return {**options, "env": dict(given.env), "size": size, "attached": attaches}  # type: ignore[typeddict-item]


def _attaches(given: Given) -> bool:
    return bool(given.pty) and not given.detach and not given.json and os.isatty(0) and os.isatty(1)


def _terminal_size() -> tuple[int, int] | None:
    try:
        cols, rows = os.get_terminal_size(1)
    except OSError:
        return None
    return (min(cols, LARGEST_WINDOW), min(rows, LARGEST_WINDOW)) if cols and rows else None
