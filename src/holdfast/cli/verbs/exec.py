"""`holdfast exec`."""

from __future__ import annotations

from holdfast.cli.options import Verb
from holdfast.cli.run_options import OPTIONS
from holdfast.cli.verbs import run as run_verb
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

_TAKEN = frozenset(
    ("detach", "c", "size", "detach_key", "name", "session", "env", "pty", "stdin", "gate", "shell", "json")
)

VERB = Verb(
    "exec",
    synopsis=["exec ID [OPTIONS] [--] COMMAND [ARGUMENT…]", "exec ID [OPTIONS] -c TEXT"],
    about="""
        Runs another command where a process runs: in the same place, directory and environment, with the same umask.
        The process may have ended, as long as it is listed by holdfast ps -a. The new process has its own id, output
        and exit code; limits, restarts and watches of the first one are not taken over.

        As with holdfast run, it runs in the foreground, or with -d in the background. The daemon reads the environment
        from its record of the process: it is not sent to this call.
    """,
    options=[option for option in OPTIONS if option.key in _TAKEN],
    exits=[
        ("N", "The exit code of the command; with -d, 0 once it runs."),
        ("120", "It ended; its exit code is unknown."),
        ("126", "The command cannot be executed."),
        ("127", "The command was not found."),
        ("128+N", "The command was ended by signal N."),
    ],
    examples=[
        ("A shell beside a server", "holdfast exec -it web -- bash"),
        ("The environment of a process that failed", "holdfast exec build -- env"),
    ],
    greedy=2,
)


def run(given: Given) -> int:
    process, *words = given.some("ID")
    command = run_verb.command_of(given, words)
    if given.size is not None and not given.pty:
        raise BadValue("exec: --size needs a terminal", next="add -t")
    return run_verb.show(
        given,
        lambda client, how: client.exec(
            process,
            command,
            name=given.name,
            env=dict(given.env),
            pty=given.pty,
            size=how.size,
            stdin=how.stdin,
            gate=given.gate,
            shell=given.shell,
            attached=how.attaches,
        ),
    )
