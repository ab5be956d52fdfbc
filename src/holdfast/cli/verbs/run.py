"""`holdfast run`."""

from __future__ import annotations

import os
import stat
import sys

from holdfast.cli import console
from holdfast.cli.options import Verb
from holdfast.cli.run_options import OPTIONS, RUN_NAMES
from holdfast.client.sync import connect
from holdfast.errors import BadValue, CommandNotFound
from holdfast.model.units import LARGEST_WINDOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.cli.options import Given
    from holdfast.client.field_types import RunOptions
    from holdfast.client.process import Process
    from holdfast.client.sync import Client


_READY_BY = ("ready_log", "ready_port", "ready_http", "ready_uptime")


VERB = Verb(
    "run",
    synopsis=["run [OPTIONS] [--] COMMAND [ARGUMENT…]", "run [OPTIONS] -c TEXT"],
    about="""
        Runs COMMAND without a shell, or with -c TEXT with the shell. A COMMAND of one word with blanks in it, such as
        "npm run dev", also runs with the shell, unless a file has this name; a message says so. The command gets the
        login environment plus this environment, this directory and this umask. Options end at the first word that is
        not an option.

        In the foreground it shows the output, passes on SIGINT (^C) and SIGTERM, and exits with the exit code of the
        command. A second ^C within two seconds kills the command with all its children. With --restart the first ^C
        ends it for good. If holdfast itself is killed, or this terminal is closed, the command goes on. On a terminal,
        ctrl-] detaches and leaves it running. With -t on a terminal, this terminal is attached: see holdfast attach.

        In the foreground, the command reads this stdin if it is a pipe or a file: echo hi | holdfast run cat. It does
        not read a terminal without -i, because a command that only shows output would take what you type for the
        shell. In a loop that reads a file, give it none: holdfast run make < /dev/null.

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
    command = command_of(given, given.words, given.cwd)
    _check(given)
    return show(given, lambda client, how: _start(client, given, command, how))


def _start(client: Client, given: Given, command: str | Sequence[str], how: CallerStreams) -> Process:
    try:
        return client.run(command, **_options(given, how))
    except CommandNotFound as error:
        if any(given.words == [process.name] for process in client.ps(all=True, used=False)):
            error.next = f"holdfast restart {given.words[0]}, which runs the process with this name again"
        raise


def show(given: Given, begin: Callable[[Client, CallerStreams], Process]) -> int:
    """Start a process, then show it as the options say: attached, in the foreground, or just its id."""
    how = CallerStreams(given)
    if how.attaches:
        from holdfast.cli.terminal import attached

        key = attached.parse_key(given.detach_key)
    with connect(given.session) as client:
        process = begin(client, how)
        for note in process.notes:
            console.say(note)
        if getattr(given, "on_boot", False):
            _say_if_not_at_login()
        if getattr(given, "wait_ready", False):
            return _until_ready(client, process, given)
        if _returns(given):
            console.out_json(process.to_json()) if given.json else console.out(process.id)
            return 0
        if how.attaches:
            return attached.attach(client, process, key, offset=0, accepted=0, consumes=True)
        return _foreground(client, process, given, how.stdin)


class CallerStreams:
    """How the command is connected to this terminal."""

    __slots__ = ("attaches", "stdin", "size")

    def __init__(self, given: Given) -> None:
        shows = not _returns(given)
        self.attaches = bool(given.pty) and shows and not given.json and os.isatty(0) and os.isatty(1)
        self.stdin = bool(given.stdin) or (shows and _has_input())
        self.size: tuple[int, int] | None = given.size or (_terminal_size() if given.pty else None)


def _has_input() -> bool:
    """Whether stdin is a pipe or a file. /dev/null has nothing to read, and a terminal belongs to the shell: a command
    that never reads would take what the user types meanwhile.
    """
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _say_if_not_at_login() -> None:
    from holdfast.cli.verbs import service

    if not service.is_installed():
        console.say(
            "after a boot it comes back with the first call. Next, to start it at login: holdfast service install"
        )


def _until_ready(client: Client, process: Process, given: Given) -> int:
    from holdfast.cli.terminal.waiting_line import WaitingLine, awaited
    from holdfast.cli.verbs import wait

    if not given.json:
        console.out(process.id)
        sys.stdout.flush()
    with WaitingLine(lambda: awaited(client, [process.id], "ready"), is_wanted=not given.json):
        waited = client.wait_for([process.id], until="ready")
    if given.json:
        console.out_json(waited.processes[0].to_json() if waited.processes else process.to_json())
    wait.report(waited, "ready")
    return wait.code(waited, False, "ready")


def _foreground(client: Client, process: Process, given: Given, stdin: bool) -> int:
    from holdfast.cli.terminal import foreground

    if not given.json:
        return foreground.watch(client, process, stdin, detach_key=_detach_key(given))
    from holdfast.cli.output.pieces import JsonPieces

    pieces = JsonPieces(raw=False)
    code = foreground.watch(client, process, stdin, pieces.show)
    pieces.close()
    console.out_json(client.inspect(process.id).to_json())
    return code


def _detach_key(given: Given) -> bytes:
    if not (os.isatty(0) and os.isatty(1)):
        return b""
    from holdfast.cli.terminal.attached import parse_key

    return parse_key(given.detach_key)


def command_of(given: Given, words: Sequence[str], cwd: str | None = None) -> str | Sequence[str]:
    """The command: a text for the shell, or words. Raises BadValue."""
    text: str | None = given.c
    if text is not None and words:
        raise BadValue(f"{given.verb.name}: either -c TEXT or a COMMAND, not both", next=given.usage)
    if text is None and not words:
        usage = f"holdfast {given.verb.name}{' ID' if given.verb.name == 'exec' else ''}"
        raise BadValue(f"{given.verb.name}: the command is missing", next=f"{usage} -- COMMAND, or {usage} -c TEXT")
    if given.shell is not None and text is None:
        raise BadValue(f"{given.verb.name}: --shell needs -c", next="give the command with -c TEXT")
    if text is None and len(words) == 1 and _is_shell_text(words[0], cwd):
        console.say(f"runs with the shell, as with -c: {console.brief(words[0])}")
        return words[0]
    return words if text is None else text


def _is_shell_text(word: str, cwd: str | None) -> bool:
    """Whether a command of one word is a text for the shell: it has several words, and no file has this name."""
    if len(word.split()) < 2:
        return False
    directories = [cwd or "."] if "/" in word else os.environ.get("PATH", os.defpath).split(":")
    return not any(os.path.exists(os.path.join(directory, word)) for directory in directories)


def _check(given: Given) -> None:
    if given.no_sandbox and given.sandbox:
        raise BadValue("run: either --sandbox or --no-sandbox, not both", next=given.usage)
    if given.size is not None and not given.pty:
        raise BadValue("run: --size needs a terminal", next="add -t")
    if given.deadline_action is not None and given.deadline is None:
        raise BadValue("run: --deadline-action needs --deadline", next="add --deadline S")
    if given.restart is None and (given.restart_limit is not None or given.restart_delay is not None):
        raise BadValue("run: --restart-limit and --restart-delay need --restart", next="add --restart on-failure")
    if given.wait_ready and not (_returns(given) and any(getattr(given, name) is not None for name in _READY_BY)):
        missing = "--ready-port N" if _returns(given) else "-d and --ready-port N"
        raise BadValue("run: --wait-ready needs -d and a --ready option", next=f"add {missing}")


def _options(given: Given, how: CallerStreams) -> RunOptions:
    options = {name: getattr(given, key) for key, name in RUN_NAMES.items()}
    options |= {name: value or None for name, value in options.items() if isinstance(value, list)}
    own = {"env": dict(given.env), "stdin": how.stdin, "size": how.size, "attached": how.attaches}
    own["sandbox"] = False if given.no_sandbox else given.sandbox or None
    return {**options, **own}  # type: ignore[typeddict-item]


def _returns(given: Given) -> bool:
    """Whether it returns at once: in the background, or because the process is to wait in a queue."""
    waits = (getattr(given, name, None) for name in ("queue", "after", "after_success"))
    return bool(given.detach) or any(waits)


def _terminal_size() -> tuple[int, int] | None:
    try:
        cols, rows = os.get_terminal_size(1)
    except OSError:
        return None
    return (min(cols, LARGEST_WINDOW), min(rows, LARGEST_WINDOW)) if cols and rows else None
