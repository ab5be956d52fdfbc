"""`holdfast digest`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, SESSION, Verb
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "digest",
    synopsis=["digest [--session S] [--json]"],
    about="""
        Shows in a few lines what still runs for a session and what ended in the last 30 minutes, for a model whose
        context was compacted or a user who comes back: id, name or command, age, state and last line of output of each
        process, newest first, and the number of pending notifications (holdfast inbox). It prints nothing if there is
        nothing.

        With --json an object: text, processes and ended (process objects, with last_line), pending.
    """,
    options=[SESSION, JSON],
    exits=[("0", "Shown, also if there is nothing.")],
    examples=[
        ("What still runs", "holdfast digest --session chat-42"),
        ("The number of pending notifications", "holdfast digest --json | jq .pending"),
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
