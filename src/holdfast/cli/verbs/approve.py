"""`holdfast approve`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "approve",
    synopsis=["approve APPROVAL [--session|--always] [--json]"],
    about="""
        Approves a request by its id, or the first 4 or more digits of it. The waiting caller continues. If no caller
        waits any more, the same command is allowed once within a day.

        The approval is valid for exactly this command, directory, backend and session, once. With --session it is valid
        for the rest of the session, with --always from now on in every session. holdfast deny revokes it.
    """,
    options=[
        Option("--session", help="Approve for the rest of the session."),
        Option("--always", help="Approve from now on, in every session."),
        JSON,
    ],
    exits=[("0", "Approved, also if it was approved before.")],
    examples=[
        ("List, then approve", "holdfast approvals; holdfast approve appr_1f0c"),
        ("Approve for the rest of the session", "holdfast approve appr_1f0c --session"),
    ],
)


def run(given: Given) -> int:
    (named,) = given.only("APPROVAL")
    if given.session and given.always:
        raise BadValue("approve: either --session or --always", next=given.usage)
    scope = "session" if given.session else "always" if given.always else "once"
    with connect() as client:
        approval = client.approve(named, scope, by="cli")
    if given.json:
        console.out_json(approval.to_json())
    else:
        console.say(f"{approval.id} is approved ({scope}): {console.brief(approval.command)}")
    return 0
