"""`holdfast mcp`."""

from __future__ import annotations

import os

from holdfast.cli.options import Option, Verb
from holdfast.errors import HoldfastError
from holdfast.extras import install_hint
from holdfast.model.units import parse_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "mcp",
    synopsis=["mcp [--session S | --client NAME] [--call-limit S] [--channel]"],
    summary="serve an MCP client on stdin and stdout",
    about="""
        Serves the tools terminal and process to one client of the Model Context Protocol, which starts this command and
        speaks with it on stdin and stdout. It ends when the client closes stdin; background processes go on.

        Processes belong to a session. Without --session and HOLDFAST_SESSION it is one with a name that nobody guesses,
        which the first answer tells; passed back as `session`, a later server goes on with it.

        A call is answered before the client gives it up: after 50 s, or 180 s for clients that are known to wait that
        long. What lasts longer goes on in the background. docs/mcp.md tells how clients are set up.
    """,
    options=[
        Option("--session", metavar="S", help="Serve session S. Default: $HOLDFAST_SESSION, else one of its own."),
        Option(
            "--client",
            choices=("claude-code", "codex"),
            help="Each conversation of that program is a session, which its hooks know, too. Default: any program.",
        ),
        Option("--call-limit", metavar="S", convert=parse_seconds, help="The longest that a call lasts."),
        Option("--channel", help="Tell news as messages of the channel claude/channel, as they come."),
    ],
    exits=[
        ("0", "The client went."),
        ("125", "The SDK of the extra mcp is not installed; the message says how to install it."),
    ],
    examples=[
        ("Add it to Claude Code", "claude mcp add holdfast -- holdfast mcp"),
        ("For a client that waits for ten minutes", "holdfast mcp --call-limit 9m"),
    ],
)


def run(given: Given) -> int:
    given.only()
    from holdfast.cli.private import hide_secrets

    hide_secrets()
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise HoldfastError("the MCP SDK is not installed", next=install_hint("mcp")) from None
    import asyncio

    from holdfast.mcp import stdio

    named = None if given.client else os.environ.get("HOLDFAST_SESSION")
    asyncio.run(stdio.serve(given.session or named or None, given.call_limit, given.channel, given.client))
    return 0
