"""`holdfast down`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import NotFound
from holdfast.model.units import parse_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.sync import Client
    from holdfast.project.events import ProjectEvent

VERB = Verb(
    "down",
    synopsis=["down [-f FILE | -p PROJECT] [--grace S] [--json] [NAME…]"],
    about="""
        Ends the processes of a project with all that they started, each when those that need it are gone: first
        SIGTERM, then, after the grace period, SIGKILL. It says what it waits for and for how long, and returns when
        nothing is left. Their output stays readable.

        With NAMEs only these are ended. Without, what has completed is done again at the next up.

        Of the file only the project's name is read. With -p no file is needed.

        With --json an object a line for what happens: event (stopping, waiting, ended, survived), member, text, id,
        process.
    """,
    options=[
        Option(
            "-f", "--file", metavar="FILE", help="The file. Default: holdfast.toml or Procfile here, or nearest above."
        ),
        Option("-p", "--project", metavar="PROJECT", help="The project, by name."),
        Option(
            "--grace",
            metavar="S",
            convert=parse_seconds,
            help="Seconds between asking and forcing. Default: 10, or as configured.",
        ),
        JSON,
    ],
    exits=[("0", "Nothing is left.")],
    examples=[
        ("End the project of this directory", "holdfast down"),
        ("End one whose file is gone, at once", "holdfast down -p shop --grace 0"),
    ],
)


def run(given: Given) -> int:
    from holdfast.project.ending import down
    from holdfast.project.loading import name_of

    project = given.project or name_of(given.file)
    with connect() as client:
        _check(client, project, given.words)
        report = down(client, project, given.words, grace=given.grace, on_event=show_json if given.json else show)
    if not (given.json or report.ended or report.survived):
        console.say(f"nothing of project {project} runs")
    return 0 if report.ok else 125


def show(event: ProjectEvent) -> None:
    console.say(str(event))


def show_json(event: ProjectEvent) -> None:
    import sys

    console.out_json(event.to_json())
    sys.stdout.flush()


def _check(client: Client, project: str, names: list[str]) -> None:
    """Raises NotFound for a name that the project never had."""
    from holdfast.project import state

    found = state.processes_of(client, project)
    known = [*found.running, *found.ended]
    for name in names:
        if name not in known:
            raise NotFound(f"project {project} runs no {name[:80]!r}", next=f"holdfast ps -a --task project:{project}")
