"""`holdfast deny`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Verb
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "deny",
    synopsis=["deny APPROVAL… [--json]"],
    about="""
        Denies requests by their ids, or the first 4 or more digits of them. The waiting caller gets an error.

        An approval that is still valid is revoked: its command needs approval again.

        With --json an array of the approvals after the change.
    """,
    options=[JSON],
    exits=[("0", "Denied, also if they were denied before.")],
    examples=[
        ("Deny a request", "holdfast deny appr_1f0c"),
        ("Revoke all approvals", "holdfast approvals --json | jq -r '.[].id' | xargs holdfast deny"),
    ],
)


def run(given: Given) -> int:
    named = given.some("APPROVAL")
    with connect() as client:
        denied = [client.deny(one, by="cli") for one in named]
    if given.json:
        console.out_json([approval.to_json() for approval in denied])
    else:
        for approval in denied:
            console.say(f"{approval.id} is denied: {console.brief(approval.command)}")
    return 0
