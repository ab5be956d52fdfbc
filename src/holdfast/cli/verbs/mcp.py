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
    synopsis=["mcp [--session S | --client NAME] [--call-limit S] [--channel | --no-notices]"],
    about="""
        Serves the tools terminal and process to one MCP client, which starts this command and uses its stdin and
        stdout. It exits when the client closes stdin; background processes go on.

        Processes belong to a session. Without --session and HOLDFAST_SESSION the session has a random name, which is in
        the first result; a later server continues that session if the name is passed as `session`.

        A call returns before the client times out: after 50 s, or 180 s for clients that are known to wait that long.
        A longer command goes on in the background. docs/mcp.md describes how to set up clients.
    """,
    options=[
        Option("--session", metavar="S", help="The session. Default: $HOLDFAST_SESSION, else a new one."),
        Option(
            "--client",
            choices=("claude-code", "codex"),
            help="Use each conversation of that program as a session, as its hooks do. Default: none.",
        ),
        Option("--call-limit", metavar="S", convert=parse_seconds, help="The longest time that a call may take."),
        Option("--channel", help="Push notifications as messages of the channel claude/channel."),
        Option("--no-notices", help="Put no notifications into results: another program delivers them."),
    ],
    exits=[
        ("0", "The client closed stdin."),
        ("125", "The MCP SDK is not installed; the message says how to install it."),
    ],
    examples=[
        ("Add it to Claude Code", "claude mcp add holdfast -- holdfast mcp"),
        ("For a client that waits for ten minutes", "holdfast mcp --call-limit 9m"),
    ],
)


def run(given: Given) -> int:
    given.only()
    from holdfast.secrets.hiding import hide_secrets

    hide_secrets()
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise HoldfastError("the MCP SDK is not installed", next=install_hint("mcp")) from None
    import asyncio

    from holdfast.mcp import stdio

    named = None if given.client else os.environ.get("HOLDFAST_SESSION")
    session = given.session or named or None
    asyncio.run(stdio.serve(session, given.call_limit, given.channel, given.client, not given.no_notices))
    return 0
