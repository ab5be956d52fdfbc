"""`holdfast run`."""

from __future__ import annotations

import os

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb, count
from holdfast.client.sync import connect
from holdfast.errors import BadValue
from holdfast.model.units import LARGEST_WINDOW, parse_seconds, parse_size, parse_window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.options import Given
    from holdfast.client.process import Process
    from holdfast.client.sync import Client
    from holdfast.client.verbs import RunOptions


_READY_BY = ("ready_log", "ready_port", "ready_http", "ready_uptime")


def parse_variable(text: str) -> tuple[str, str]:
    """`K=V`, or `K` for the value that K has here."""
    name, equals, value = text.partition("=")
    if not name:
        raise BadValue(f"{text[:80]!r} is no variable", next="write it as NAME=VALUE")
    if not equals and name not in os.environ:
        raise BadValue(f"{name[:80]!r} is not set here", next=f"say its value: --env {name[:80]}=VALUE")
    return name, value if equals else os.environ[name]


def parse_codes(text: str) -> list[int]:
    """`0,3`."""
    return [count(word.strip()) for word in text.split(",")]


def _processors(text: str) -> float:
    try:
        processors = float(text)
    except ValueError:
        processors = 0.0
    if not 0 < processors < 1e6:  # also refuses nan
        raise BadValue(f"{text[:80]!r} is no number of processors", next="write it as 2 or 0.5")
    return processors


def parse_origin(text: str) -> object:
    """An object; whatever else it has to be, the daemon checks."""
    from holdfast.wire import light_json

    try:
        value = light_json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BadValue(f"{text[:80]!r} is no JSON object", next="""write it as '{"chat": "42"}'""")
    return value


VERB = Verb(
    "run",
    synopsis=["run [OPTIONS] [--] COMMAND [ARGUMENT…]", "run [OPTIONS] -c TEXT"],
    summary="start a command, in the foreground or with -d in the background",
    about="""
        Starts COMMAND as it is, without a shell; with -c, TEXT is run by the shell. The command gets this environment
        on top of the login environment, this directory and this umask. Options end at the first word that is none.

        In the foreground the output is shown as it comes, SIGINT (^C) and SIGTERM are passed on, a second ^C within
        two seconds ends the command and all that it started by force, and holdfast ends with the command's own code.
        With --restart the first one ends it for good. If holdfast itself goes away, the command goes on. With -t on a
        terminal it is as if attached: see holdfast attach.

        Its end, and what it is watched for, is told to its session: see holdfast inbox. One who saw the end here, in
        the foreground, is not told of it again.

        With -d it returns as soon as the command runs, and prints its id (with --json the process object). In the
        foreground, --json prints a line for each piece of output (stream, offset, text), and the process object last.
    """,
    options=[
        Option("-d", "--detach", help="Do not wait: print the id and return."),
        Option("-c", metavar="TEXT", help="Run TEXT by the shell, instead of a COMMAND."),
        Option("--name", metavar="NAME", help="A name that stands for the id. One running process can have it."),
        Option("--session", metavar="S", help="The session it belongs to. Default: $HOLDFAST_SESSION, else default."),
        Option("--task", metavar="T", help="A second key to group processes by."),
        Option("--parent-session", metavar="S", help="The session that its own session was started by."),
        Option("--cwd", metavar="DIR", help="Run in DIR. Default: the current directory."),
        Option(
            "--env",
            metavar="K=V",
            convert=parse_variable,
            repeat=True,
            help="Set variable K to V; K alone hands on the value it has here.",
        ),
        Option(
            "--clean-env",
            help="Leave secrets out of its environment, by name and by look; what is named with --env, or as pass_env "
            "in config.toml, stays. The names of what was left out are said.",
        ),
        Option("-t", "--pty", help="Give it a terminal of its own."),
        Option(
            "--size",
            metavar="COLSxROWS",
            convert=parse_window,
            help="The size of the terminal. Default: that of this one, else 120x30.",
        ),
        Option(
            "--stdin",
            help="Keep its input open for send; in the foreground, hand on what comes from stdin. Without, it reads "
            "end of file at once. A terminal is always open.",
        ),
        Option("--split", help="Keep stderr apart from stdout. By default they are one log, in true order."),
        Option(
            "--lifetime",
            choices=("session", "daemon", "detached"),
            help="When it ends at the latest: with its session, when the daemon is stopped on purpose, or neither. "
            "A crash ends none of them. Default: detached.",
        ),
        Option("--deadline", metavar="S", convert=parse_seconds, help="A limit on how long it may run (90, 10m, 2h)."),
        Option(
            "--deadline-action",
            choices=("kill", "notify"),
            help="What happens at the deadline. Default: kill.",
        ),
        Option("--ready-log", metavar="RE", help="Ready when a line of its output matches RE (RE2 syntax)."),
        Option("--ready-port", metavar="N", convert=count, help="Ready when it listens on TCP port N itself."),
        Option("--ready-http", metavar="URL", help="Ready when URL answers with 2xx or 3xx."),
        Option("--ready-uptime", metavar="S", convert=parse_seconds, help="Ready when it has been up for S seconds."),
        Option(
            "--ready-timeout",
            metavar="S",
            convert=parse_seconds,
            help="Not ready after S seconds means never; it goes on all the same. Default: no limit.",
        ),
        Option("--wait-ready", help="With -d: return when it is ready, and end as holdfast wait --until ready does."),
        Option(
            "--stall",
            metavar="S",
            convert=parse_seconds,
            help="Mark it as stalled when it has neither written nor used the processor for S seconds. Ends nothing.",
        ),
        Option(
            "--notify",
            choices=("any", "failure", "success", "never"),
            implies="any",
            help="Which of its ends notify its session (holdfast inbox). It concerns ends alone. An end that the "
            "session asked for does not. Default: any; with a watch, none until the watch is disabled.",
        ),
        Option(
            "--watch",
            metavar="TEXT",
            repeat=True,
            help="Notify its session when a line of its output holds TEXT. Dropped where --notify=any is given.",
        ),
        Option("--watch-regex", metavar="RE", repeat=True, help="The same for a line that matches RE (RE2 syntax)."),
        Option(
            "--check-interval",
            metavar="S",
            convert=parse_seconds,
            help="Tell its session every S seconds what it wrote since, if it did. At least 1.",
        ),
        Option(
            "--origin",
            metavar="JSON",
            convert=parse_origin,
            help="An object that comes back with every notification of it, such as the address to answer to.",
        ),
        Option(
            "--restart",
            choices=("never", "on-failure", "always"),
            help="Run it again when it ends by itself: never, when it failed, or always. What was killed, or ended at "
            "its deadline, stays ended. Default: never.",
        ),
        Option(
            "--restart-limit",
            metavar="N",
            convert=count,
            help="Give up after N restarts in a row, 0 for never. A run that goes well begins a new row. Default: 5.",
        ),
        Option(
            "--restart-delay",
            metavar="S",
            convert=parse_seconds,
            help="The pause before the first restart; it doubles with each further one, up to a minute. Default: 1.",
        ),
        Option(
            "--success-codes",
            metavar="N,N…",
            convert=parse_codes,
            help="Exit codes that are no failure. Default: 0.",
        ),
        Option(
            "--stop-cmd",
            metavar="TEXT",
            help="Run TEXT by the shell before the process is signalled, in its directory and environment and with its "
            "pid in HOLDFAST_PID, for as long as the grace period at most.",
        ),
        Option(
            "--if-running",
            choices=("reuse", "replace", "error", "allow"),
            help="When the session already runs this command in this directory: take that one, end it first, fail, or "
            "start another. Default: allow, and say so.",
        ),
        Option(
            "--log-cap",
            metavar="SIZE",
            convert=parse_size,
            help="Keep the last SIZE bytes of output (10M, 2G). Default: 256M, or as configured.",
        ),
        Option(
            "--memory",
            metavar="SIZE",
            convert=parse_size,
            help="A limit on its memory (500M, 2G), with all that it starts: past it, all of it ends, and the reason "
            "is oom.",
        ),
        Option("--cpus", metavar="N", convert=_processors, help="A limit on the processors that it may use (2, 0.5)."),
        Option("--pids", metavar="N", convert=count, help="A limit on how many processes and threads it may be."),
        Option("--sudo", help="Have sudo in it ask for a password by holdfast approvals --follow, without a terminal."),
        Option("--gate", help="Judge it first: what is dangerous needs a person's approval (holdfast approvals)."),
        Option("--shell", metavar="PATH", help="The shell for -c. Default: as configured, else bash, else sh."),
        Option(
            "--detach-key",
            metavar="KEY",
            help="With -t: the key that leaves the command running. Default: ctrl-].",
        ),
        JSON,
    ],
    exits=[
        ("N", "The command's own exit code; with -d, 0 once it runs."),
        ("120", "It ended, and nobody was left to see how."),
        ("126", "The command cannot be executed."),
        ("127", "The command was not found."),
        ("128+N", "The command was ended by signal N."),
    ],
    examples=[
        ("Build in the background, and come back for it", "id=$(holdfast run -d -- make -j8); holdfast wait $id"),
        ("A server, as soon as it is one", "holdfast run -d --wait-ready --ready-port 3000 -c 'npm run dev'"),
        ("A build, with word when it fails", "holdfast run -d --notify=failure make; holdfast inbox --wait 1h --ack"),
        ("A server by name, at most for a day", "holdfast run -d --name web --deadline 1d -c 'npm run dev | tee log'"),
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
        if given.wait_ready:
            return _until_ready(client, process, given)
        if given.detach:
            console.out_json(process.to_json()) if given.json else console.out(process.id)
            return 0
        if attaches:
            return attached.attach(client, process, key, offset=0, accepted=0, consumes=True)
        return _foreground(client, process, given)


def _until_ready(client: Client, process: Process, given: Given) -> int:
    from holdfast.cli.verbs import wait

    if not given.json:
        console.out(process.id)
    waited = client.wait_for([process.id], until="ready")
    if given.json:
        console.out_json(waited.processes[0].to_json() if waited.processes else process.to_json())
    wait.tell(waited, "ready")
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
        raise BadValue("run: --size is for a terminal", next="add -t")
    if given.shell is not None and given.c is None:
        raise BadValue("run: --shell is for a command text", next="give it with -c TEXT")
    if given.deadline_action is not None and given.deadline is None:
        raise BadValue("run: --deadline-action without --deadline", next="add --deadline S")
    if given.restart is None and (given.restart_limit is not None or given.restart_delay is not None):
        raise BadValue("run: --restart-limit and --restart-delay are for --restart", next="add --restart on-failure")
    if given.wait_ready and not (given.detach and any(getattr(given, name) is not None for name in _READY_BY)):
        raise BadValue("run: --wait-ready is for -d with something to be ready by", next="add -d and --ready-port N")


def _options(given: Given, attaches: bool) -> RunOptions:
    names = ("name", "task", "parent_session", "cwd", "pty", "stdin", "split", "lifetime", "log_cap", "deadline")
    again = ("restart", "restart_limit", "restart_delay", "success_codes", "stop_cmd")
    more = ("deadline_action", "if_running", "shell", *_READY_BY, "ready_timeout", "stall", "gate", "sudo")
    limits, news = ("memory", "cpus", "pids"), ("notify", "check_interval", "origin")
    options = {name: getattr(given, name) for name in (*names, *again, *more, *limits, *news)}
    options |= {name: getattr(given, name) or None for name in ("watch", "watch_regex")}
    size = given.size or (_terminal_size() if given.pty else None)
    return {**options, "env": dict(given.env), "size": size, "attached": attaches, "clean": given.clean_env}  # type: ignore[typeddict-item]


def _attaches(given: Given) -> bool:
    return bool(given.pty) and not given.detach and not given.json and os.isatty(0) and os.isatty(1)


def _terminal_size() -> tuple[int, int] | None:
    try:
        cols, rows = os.get_terminal_size(1)
    except OSError:
        return None
    return (min(cols, LARGEST_WINDOW), min(rows, LARGEST_WINDOW)) if cols and rows else None
