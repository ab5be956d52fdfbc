"""`holdfast approvals`."""

from __future__ import annotations

import sys

from holdfast.cli import colours, console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.results.approval import Approval
    from holdfast.client.sync import Client

VERB = Verb(
    "approvals",
    synopsis=["approvals [--all] [--session S] [--json]", "approvals --follow [--session S] [--json]"],
    about="""
        Dangerous commands of agents wait for approval. This lists the pending requests, and the approvals that are
        still valid: for a session, for always, or for once and not used yet. Answer with holdfast approve and holdfast
        deny; deny also revokes an approval.

        With --follow on a terminal, each request is shown as it comes, with a prompt. Type approve to allow it once,
        approve session to allow exactly this command for the rest of its session, approve always to allow it from now
        on. Anything else denies it: Enter alone, the end of the input, or no answer in time. While this runs, callers
        wait for your answer.

        With --follow --json it prints an object per line for each request and each change. The reader shows them to an
        approver, and answers with holdfast approve and holdfast deny.
    """,
    options=[
        Option("--all", help="Also requests that are decided, expired or used up."),
        Option("-f", "--follow", help="Ask about each request as it comes."),
        Option("--session", metavar="S", help="Only requests of session S. Default: all sessions."),
        JSON,
    ],
    exits=[("0", "Listed, also if there are none.")],
    examples=[
        ("Pending requests", "holdfast approvals"),
        ("Answer requests as they come", "holdfast approvals --follow"),
        ("Permanent approvals", "holdfast approvals --json | jq '.[] | select(.scope == \"always\")'"),
    ],
)


def run(given: Given) -> int:
    given.only()
    if given.follow and given.all:
        raise BadValue("approvals: either --all or --follow", next=given.usage)
    with connect() as client:
        if given.follow:
            return _follow(client, given)
        found = client.approvals(all=given.all, session=given.session)
    if given.json:
        console.out_json([approval.to_json() for approval in found])
    elif found:
        _show(found)
    else:
        console.say("no request is pending")
    return 0


def _follow(client: Client, given: Given) -> int:
    if given.json:
        return _stream(client, given.session)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadValue("approvals: --follow needs a terminal", next="--follow --json for a program")
    from holdfast.cli.terminal import asking

    return asking.follow(client, given.session)


def _stream(client: Client, session: str | None) -> int:
    shown: set[str] = set()
    with client.follow_approvals(session=session) as reading:
        for approval in reading:
            console.out_json(approval.to_json())
            sys.stdout.flush()
            if approval.state == "pending" and approval.id not in shown:
                shown.add(approval.id)
                client.approval_shown(approval)
    return 0


def _show(found: list[Approval]) -> None:
    rows = [
        (one.id, one.session, one.scope or one.state, one.action, one.why, console.brief(one.command)) for one in found
    ]
    colour = {"pending": colours.YELLOW, "approved": colours.GREEN}
    states = [one.state for one in found]
    head = ("ID", "SESSION", "STATE", "ACTION", "WHY", "COMMAND")
    console.out(console.table(head, rows, lambda row, column: colour.get(states[row], "") if column == 2 else ""))
