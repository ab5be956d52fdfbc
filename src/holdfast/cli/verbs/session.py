"""`holdfast session`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "session",
    synopsis=["session end S [--json]"],
    summary="end a session",
    about="""
        Ends session S: its processes with lifetime session are ended as by kill. Those that were to outlive it go on
        and are named.

        With --json an object with results (as of kill, one for each process that was ended) and left (the ids of
        those that go on).
    """,
    options=[JSON],
    exits=[("0", "Ended, also when the session had no processes.")],
    examples=[
        ("A conversation is over", "holdfast session end chat-42"),
        ("Which of its processes go on", "holdfast session end chat-42 --json | jq .left"),
    ],
)


def run(given: Given) -> int:
    action, session = given.only("end", "S")
    if action != "end":
        raise BadValue(f"session: cannot {action[:80]!r}", next=given.usage)
    with connect() as client:
        answer = client.end_session(session)
    if given.json:
        console.out_json(answer)
        return 0
    for result in answer["results"]:
        console.out(f"{result['id']}: {result['status']}")
    for process_id in answer["left"]:
        console.say(f"{process_id} goes on")
    return 0
