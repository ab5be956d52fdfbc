"""`holdfast kill`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import GRACE, JSON, Option, Verb
from holdfast.client.signals import signal_name, signal_number
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.process import KillResult

VERB = Verb(
    "kill",
    synopsis=[
        "kill ID… [-9] [-s SIGNAL] [--grace S] [--json]",
        "kill --session S | --task T | --all  [-9] [-s SIGNAL] [--grace S] [--json]",
    ],
    about="""
        Ends each process with its whole tree, also children that called setsid or daemonised: first SIGTERM, then,
        after the grace period, SIGKILL. It returns when all have exited, and says whether SIGKILL was needed. Pids that
        survive are printed, and the process then still counts as running.

        With -9 the whole tree is ended with SIGKILL at once, without a grace period. A process that would be restarted
        is not restarted.

        With -s it only sends that signal to the tree: -s STOP and -s CONT pause and resume it. -HUP or -1 is the same
        as -s HUP.

        A process that waits to be started is removed from its queue. It takes no other signal.

        Of a process that has already ended it says so, and how it ended.

        With --json an object with id, status, reason, forced, survivors, exit_code, signal, sent, already_ended and
        queue; unless exactly one ID was given, an array of them.
    """,
    options=[
        Option("-9", "-SIGKILL", "-KILL", help="End the tree at once with SIGKILL, as with --grace 0."),
        Option(
            "-s",
            "--signal",
            metavar="SIGNAL",
            convert=signal_number,
            dashed=True,
            help="Only send this signal: TERM, SIGHUP, 9, RTMIN+1, …",
        ),
        GRACE,
        Option("--session", metavar="S", help="All processes of session S."),
        Option("--task", metavar="T", help="All processes of task T."),
        Option("--all", help="All processes of the instance, of every session."),
        JSON,
    ],
    exits=[("0", "All have exited or got the signal, also if they had exited before.")],
    examples=[
        ("End a server and its workers", "holdfast kill web"),
        ("Without waiting for it", "holdfast kill -9 web"),
        ("Let it reread its configuration", "holdfast kill -s HUP web"),
    ],
)


def run(given: Given) -> int:
    _check_scope(given)
    with connect() as client:
        results = client.kill(
            *given.words,
            session=given.session,
            task=given.task,
            all=given.all,
            signal=given.signal,
            grace=0.0 if given.KILL else given.grace,
        )
    if given.json:
        objects = [result.to_json() for result in results]
        console.out_json(objects[0] if len(given.words) == 1 and objects else objects)
    else:
        for result in results:
            console.out(_line(result, given.signal))
    return 125 if any(map(_failed, results)) and given.signal is None else 0


def _check_scope(given: Given) -> None:
    scopes = [f"--{name}" for name in ("session", "task", "all") if getattr(given, name) not in (None, False)]
    if given.words:
        scopes.insert(0, "IDs")
    if len(scopes) > 1:
        raise BadValue(f"kill: {' and '.join(scopes)} exclude each other", next="give one of them")
    if not scopes:
        raise BadValue("kill: nothing to kill", next="give IDs, or one of --session, --task, --all")
    if given.KILL and (given.signal is not None or given.grace is not None):
        raise BadValue("kill: -9 excludes other signals and --grace", next="give one of them")


def _line(result: KillResult, signal: int | None) -> str:
    if signal is not None and result.status != "ended":
        return f"{result.id}: {signal_name(signal)} sent to {result.sent} of its processes"
    if result.survivors:
        return f"{result.id}: still alive: pid {', '.join(map(str, result.survivors))}"
    if result.queue is not None:
        return f"{result.id}: removed from the queue {result.queue}"
    if result.exit_code is not None:
        how = f"exit {result.exit_code}"
    elif result.signal is not None:
        how = signal_name(result.signal)
    else:
        how = result.reason or "exit unknown"
        if how == "killed" and not result.already_ended:
            return f"{result.id}: removed before it was started"
    status = "has already ended" if result.already_ended else result.status
    return f"{result.id}: {status} ({how}{', forced' if result.forced else ''})"


def _failed(result: KillResult) -> bool:
    return bool(result.survivors) or result.status != "ended"
