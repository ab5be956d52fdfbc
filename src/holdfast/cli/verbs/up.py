"""`holdfast up`."""

from __future__ import annotations

import time

from holdfast.cli import console
from holdfast.cli.options import GRACE, JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue
from holdfast.model.units import age_text

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
        Starts the processes of holdfast.toml (or a Procfile), or the named ones with their dependencies. Each starts as
        soon as its dependencies are started, ready, completed or have written a line, as the file says; independent
        ones start at the same time. A running process that the file did not change is left alone, a changed one is
        restarted, and a completed one-shot is not repeated before holdfast down. So up can be called at any time, also
        after it was killed.

        In the foreground it shows the output of all, each line with the name of its process, and returns when all have
        ended. ^C ends them with SIGTERM, a second ^C with SIGKILL. If holdfast itself is killed, they go on.

        With -d it returns when all are started, and those with a ready option are ready.

        If a process fails, those that depend on it are not started, and its exit code is the result.

        With --json an object per line and step: event (waiting, kept, replacing, started, note, ready, completed,
        failed, skipped, orphan, stopping, ended, survived; output with stream, offset and text), member, text, id,
        process. With --check and --status one document.
    """,
    options=[
        Option("-d", "--detach", help="Run in the background: return when all are started and ready."),
        Option(
            "-f", "--file", metavar="FILE", help="Default: the nearest holdfast.toml or Procfile, from here upwards."
        ),
        Option("-p", "--project", metavar="PROJECT", help="The name of the project. Default: from the file."),
        Option("--profile", metavar="P", repeat=True, help="Also processes of profile P."),
        Option("--check", help="Only check the file, and show the start order."),
        Option("--status", help="Only show the state of the processes."),
        Option("--no-wait", help="With -d: do not wait until processes are ready that no other depends on."),
        Option("--fresh", help="Restart also what runs unchanged, and repeat completed one-shots."),
        Option("--remove-orphans", help="End processes of the project that are no longer in the file."),
        GRACE,
        JSON,
    ],
    exits=[
        ("0", "With -d: all are up. In the foreground: all ended with success."),
        ("N", "The exit code of the first that failed; 126 or 127 if it could not be started."),
        ("124", "A process was not ready in time."),
        ("130", "^C: the project was ended."),
    ],
    examples=[
        ("Start all and show their output, until ^C", "holdfast up"),
        ("One process with its dependencies, in the background", "holdfast up -d worker"),
    ],
)

_HEAD = ("NAME", "STATUS", "READY", "RESTARTS", "PORTS", "AGE", "ID")
#: What a narrow terminal does without, the first one first.
_DROP = ("ID", "RESTARTS", "READY", "AGE", "PORTS")


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
        console.say("interrupted; started processes go on: holdfast up, or holdfast down")
        raise
    say_failures(report.failures, given.json)
    if not given.json:
        _status(client, project, given)
    return report.exit_status


def _foreground(client: Client, project: Project, given: Given) -> int:
    from holdfast.cli.output.together import Together

    return Together(client, project, given, fresh(project, given)).run()


def fresh(project: Project, given: Given) -> list[str]:
    """The members to restart: with names, only these and not their dependencies."""
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
        console.out(f"{project.file} is valid: project {project.name}, {len(project.members)} processes")
        for number, wave in enumerate(waves, 1):
            console.out(f"{number}. {', '.join(wave)}")
    return 0


def _status(client: Client, project: Project, given: Given) -> int:
    from holdfast.cli.verbs.ps import short_ids
    from holdfast.project.state import status

    listed = status(client, project)
    if given.json:
        console.out_json([member.to_json() for member in listed])
    else:
        now = time.time()
        rows = [_row(member, now) for member in listed]
        console.out(console.table(_HEAD, rows, drop=_DROP, short={"ID": short_ids([row[-1] for row in rows])}))
    return 0


def _row(member: MemberStatus, now: float) -> tuple[str, ...]:
    from holdfast.cli.outcomes import begun_at
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
        age_text(now - begun) if (begun := begun_at(process)) is not None else "-",
        process.id,
    )
