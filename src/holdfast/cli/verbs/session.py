"""`holdfast session`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.wire.frames import Message

VERB = Verb(
    "session",
    synopsis=["session end S [--to S2 | --keep] [--json]", "session rename OLD NEW [--json]"],
    about="""
        end: ends session S. Processes with lifetime session are ended as by holdfast kill. The others go on: with the
        pending notifications they move to the parent session (run --parent-session), or to S2. Without either, and with
        --keep, they stay with S. It prints what happened to each process.

        rename: renames a session, for example after a conversation was compacted. Its processes and notifications, also
        future ones for the OLD name, belong to NEW.

        With --json an object. end: results (as of kill, one per ended process), passed (id and to), left (ids of
        processes that stay), notifications (ids of those that moved). rename: processes, notifications (ids).
    """,
    options=[
        Option("--to", metavar="S2", help="end: the session that the others move to. Default: the parent session."),
        Option("--keep", help="end: the others and the notifications stay with S."),
        JSON,
    ],
    exits=[("0", "Done, also if the session had no processes.")],
    examples=[
        ("End a session", "holdfast session end chat-42"),
        ("Processes that moved, for a program", "holdfast session end chat-42 --json | jq .passed"),
        ("Rename a session", "holdfast session rename chat-42 chat-43"),
    ],
)


def run(given: Given) -> int:
    if given.words[:1] == ["rename"]:
        return _rename(given)
    action, session = given.only("end or rename", "S")
    if action != "end":
        raise BadValue(f"session: cannot {action[:80]!r}", next=given.usage)
    if given.to is not None and given.keep:
        raise BadValue("session: either --to or --keep, not both", next=given.usage)
    with connect() as client:
        answer = client.end_session(session, to=given.to, keep=given.keep)
    console.out_json(answer) if given.json else _show_end(answer)
    return 0


def _show_end(answer: Message) -> None:
    for result in answer["results"]:
        console.out(f"{result['id']}: {result['status']}")
    for one in answer["passed"]:
        console.out(console.visible(f"{one['id']}: moved to {one['to']}"))
    for process_id in answer["left"]:
        console.say(f"{process_id} still runs")
    if answer["notifications"]:
        console.say(f"{len(answer['notifications'])} notifications moved with them")


def _rename(given: Given) -> int:
    _, old, new = given.only("rename", "OLD", "NEW")
    if given.to is not None or given.keep:
        raise BadValue("session: --to and --keep are for end", next=given.usage)
    with connect() as client:
        answer = client.rename_session(old, new)
    if given.json:
        console.out_json(answer)
    else:
        counts = f"{len(answer['processes'])} processes, {len(answer['notifications'])} notifications"
        console.say(f"{old} is now {new}: {counts}")
    return 0
