"""`holdfast hook`."""

from __future__ import annotations

from holdfast.cli import colours, console
from holdfast.cli.options import Option, Verb
from holdfast.errors import BadValue, HoldfastError
from holdfast.integrations import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "hook",
    synopsis=["hook NAME [--wait]"],
    about="""
        Called by the hooks that holdfast integrate sets up, not by users. Reads on stdin what the program says of its
        conversation, and writes its pending notifications to stdout: ends of processes and matches, each once, and
        at the beginning what still runs.

        An error does not stop the program: it is a line on stderr, and the exit code is 0.
    """,
    options=[Option("--wait", help="Wait for notifications, write them to stderr, and exit with 2.")],
    exits=[("0", "Always."), ("2", "With --wait: there are notifications.")],
    examples=[
        ("As Claude Code calls it", "holdfast hook claude-code < event.json"),
        ("As it calls it in the background, after a turn", "holdfast hook claude-code --wait < event.json"),
    ],
)


def run(given: Given) -> int:
    (name,) = given.only("NAME")
    if name not in NAMES:
        raise BadValue(f"no integration {name[:80]!r}", next=f"one of: {', '.join(NAMES)}")
    try:
        from holdfast.integrations import hook

        if given.wait:
            return hook.wait(name)
        hook.answer(name)
    except HoldfastError as error:
        console.say_error(error)
    except Exception as fault:  # noqa: BLE001 - no error of ours may stop the program that calls the hook
        console.say(f"hook {name}: {str(fault) or type(fault).__name__}", colours.RED)
    return 0
