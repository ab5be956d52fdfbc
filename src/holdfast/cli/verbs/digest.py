"""`holdfast digest`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "digest",
    synopsis=["digest [--session S] [--json]"],
    about="""
        Shows, in one short block, what still runs for a session: for a model whose context was cut, or for a user
        who comes back. Id, name or command, age, state, and the last line of its output, newest first; and how
        many notifications are pending (holdfast inbox). Nothing when nothing runs and none is pending.

        With --json an object: text, processes (process objects, with last_line), pending.
    """,
    options=[
        Option("--session", metavar="S", help="Of session S. Default: $HOLDFAST_SESSION, else default."),
        JSON,
    ],
    exits=[("0", "Shown, also when there is nothing.")],
    examples=[
        ("What was I doing?", "holdfast digest --session chat-42"),
        ("How much is unread", "holdfast digest --json | jq .pending"),
    ],
)


def run(given: Given) -> int:
    given.only()
    with connect(given.session) as client:
        answer = client.digest()
    if given.json:
        console.out_json(answer)
    elif answer["text"]:
        console.out(console.visible_lines(answer["text"]))
    return 0
