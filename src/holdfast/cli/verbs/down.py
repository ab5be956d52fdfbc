"""`holdfast down`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import GRACE, JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.sync import Client
    from holdfast.project.events import ProjectEvent

VERB = Verb(
    "down",
    synopsis=["down [-f FILE | -p PROJECT] [--grace S] [--json] [NAME…]"],
    about="""
        Ends the processes of a project with all their children, in the reverse order of their dependencies: first
        SIGTERM, then, after the grace period, SIGKILL. It prints what it waits for, and returns when all have exited.
        Their output stays readable.

        With NAMEs only these are ended. Without, the next up also repeats one-shots that had completed.

        Only the name of the project is read from the file. With -p no file is needed.

        With --json an object per line and step: event (stopping, waiting, ended, survived), member, text, id, process.
    """,
    options=[
        Option(
            "-f", "--file", metavar="FILE", help="Default: the nearest holdfast.toml or Procfile, from here upwards."
        ),
        Option("-p", "--project", metavar="PROJECT", help="The name of the project."),
        GRACE,
        JSON,
    ],
    exits=[("0", "All have exited.")],
    examples=[
        ("End the project of this directory", "holdfast down"),
        ("End a project without its file, by SIGKILL at once", "holdfast down -p shop --grace 0"),
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
        console.say(f"no process of project {project} runs")
    return 0 if report.ok else 125


def show(event: ProjectEvent) -> None:
    console.say(str(event))


def show_json(event: ProjectEvent) -> None:
    import sys

    console.out_json(event.to_json())
    sys.stdout.flush()


def _check(client: Client, project: str, names: list[str]) -> None:
    """Raises NotFound for a name that the project does not have."""
    from holdfast.project import state

    found = state.processes_of(client, project)
    known = [*found.running, *found.ended]
    for name in names:
        if name not in known:
            raise NotFound(
                f"project {project} has no process {name[:80]!r}", next=f"holdfast ps -a --task project:{project}"
            )
