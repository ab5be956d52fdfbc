"""`holdfast up`."""

from __future__ import annotations

import time

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue
from holdfast.model.units import age_text, parse_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.sync import Client
    from holdfast.errors import HoldfastError
    from holdfast.project.spec import Project
    from holdfast.project.state import MemberStatus

VERB = Verb(
    "up",
    synopsis=[
        "up [-d] [-f FILE] [-p PROJECT] [--profile P] [--fresh] [--remove-orphans] [--no-wait] [--json] [NAME…]",
        "up --check [-f FILE] [--json]",
        "up --status [-f FILE] [--json]",
    ],
    about="""
        Starts the processes in holdfast.toml (or a Procfile), or those named with what they need. Each starts as soon
        as what it depends on is started, ready, completed or has written a line, as the file says; independent ones
        start at once. What already runs as the file has it is left alone; what changed in the file is ended and
        started anew; a one-shot that completed is not repeated before the project was brought down. So up may be
        called again at any time, also after it was killed.

        In the foreground it shows the output of all of them, each line with the name of its process. ^C brings down
        what it shows, politely; a second ^C forces it. If holdfast itself is killed, they go on. It ends when all of
        them have ended.

        With -d it returns when everything is started, and what has a rule for being ready is ready.

        When something that others need fails, these are not started, and the exit code is that of what failed.

        With --json an object a line for what happens: event (waiting, kept, replacing, started, note, ready,
        completed, failed, skipped, orphan, stopping, ended, survived; output with stream, offset and text), member,
        text, id, process. With --check and --status one document.
    """,
    options=[
        Option("-d", "--detach", help="Return when everything is up."),
        Option(
            "-f", "--file", metavar="FILE", help="The file. Default: holdfast.toml or Procfile here, or nearest above."
        ),
        Option("-p", "--project", metavar="PROJECT", help="The project's name. Default: as in the file."),
        Option("--profile", metavar="P", repeat=True, help="Also those that have the profile P."),
        Option("--check", help="Only check the file, and show the order in which its processes start."),
        Option("--status", help="Only show the state of its processes."),
        Option("--no-wait", help="With -d: do not wait for processes to be ready that no other depends on."),
        Option("--fresh", help="Start anew also what runs unchanged or has completed."),
        Option("--remove-orphans", help="End what runs for the project but is not in the file any more."),
        Option(
            "--grace",
            metavar="S",
            convert=parse_seconds,
            help="Seconds between asking and forcing, where something is ended. Default: 10, or as configured.",
        ),
        JSON,
    ],
    exits=[
        ("0", "Everything is up; in the foreground: everything ended with success."),
        ("N", "The exit code of the first that failed; 126 and 127 when it could not be started."),
        ("124", "Something was not ready in time."),
        ("130", "It was interrupted (^C) and the project brought down."),
    ],
    examples=[
        ("All of it, and their output, until ^C", "holdfast up"),
        ("The worker with what it needs, in the background", "holdfast up -d worker"),
    ],
)

_HEAD = ("NAME", "STATUS", "READY", "RESTARTS", "PORTS", "AGE", "ID")


def run(given: Given) -> int:
    from holdfast.project.loading import load

    if given.check and given.status:
        raise BadValue("up: either --check or --status, not both", next=given.usage)
    project = load(given.file, name=given.project)
    if given.check:
        return _check(project, given)
    with connect() as client:
        if given.status:
            return _status(client, project, given)
        return _detached(client, project, given) if given.detach else _foreground(client, project, given)


def _detached(client: Client, project: Project, given: Given) -> int:
    from holdfast.cli.verbs.down import show, show_json
    from holdfast.project.starting import up

    try:
        report = up(
            client,
            project,
            given.words,
            profiles=given.profile,
            wait=not given.no_wait,
            fresh=fresh(project, given),
            remove_orphans=given.remove_orphans,
            grace=given.grace,
            on_event=show_json if given.json else show,
        )
    except KeyboardInterrupt:
        console.say("interrupted; what was started goes on: holdfast up, or holdfast down")
        raise
    say_failures(report.failures, given.json)
    if not given.json:
        _status(client, project, given)
    return report.exit_status


def _foreground(client: Client, project: Project, given: Given) -> int:
    from holdfast.cli.together import Together

    return Together(client, project, given, fresh(project, given)).run()


def fresh(project: Project, given: Given) -> list[str]:
    """Those that are to be started anew: with names, just these, and not what they need."""
    if not given.fresh:
        return []
    return given.words or project.chosen((), tuple(given.profile))


def say_failures(failures: list[HoldfastError], json: bool) -> None:
    for failure in failures:
        if json:
            console.out_json({"error": failure.to_wire()})
        console.say_error(failure)


def _check(project: Project, given: Given) -> int:
    from holdfast.project import order
    from holdfast.project.loading import check_directories

    check_directories(project)
    waves = order.waves({name: list(project.members[name].needs) for name in project.members})
    if given.json:
        console.out_json({"project": project.name, "file": project.file, "order": waves})
    else:
        console.out(f"{project.file} is fine: project {project.name}, {len(project.members)} processes")
        for number, wave in enumerate(waves, 1):
            console.out(f"{number}. {', '.join(wave)}")
    return 0


def _status(client: Client, project: Project, given: Given) -> int:
    from holdfast.project.state import status

    listed = status(client, project)
    if given.json:
        console.out_json([member.to_json() for member in listed])
    else:
        now = time.time()
        console.out(console.table(_HEAD, [_row(member, now) for member in listed]))
    return 0


def _row(member: MemberStatus, now: float) -> tuple[str, ...]:
    from holdfast.client.process import outcome

    process = member.process
    if process is None:
        return (member.member, "not started", "-", "-", "-", "-", "-")
    remark = "" if member.is_in_file else " (not in the file)"
    remark = " (changed in the file)" if member.is_changed else remark
    return (
        member.member,
        outcome(process) + remark,
        {None: "-", True: "yes", False: "no"}[process.ready],
        str(process.restarts or 0),
        ",".join(map(str, process.ports or ())) or "-",
        age_text(now - process.started_at) if process.started_at is not None else "-",
        process.id,
    )
