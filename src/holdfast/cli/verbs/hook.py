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
        Called by the hooks that holdfast integrate sets up, not by users. It reads the event of the program on stdin,
        and writes the pending notifications of that conversation to stdout, each once; at the start of a conversation
        also what still runs.

        An error never stops the program: it is a line on stderr, and the exit code is 0.
    """,
    options=[Option("--wait", help="Wait for notifications, write them to stderr, and exit with 2.")],
    exits=[("0", "Always."), ("2", "With --wait: there are notifications.")],
    examples=[
        ("As Claude Code calls it", "holdfast hook claude-code < event.json"),
        ("As Claude Code calls it in the background, after a turn", "holdfast hook claude-code --wait < event.json"),
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
