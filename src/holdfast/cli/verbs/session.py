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
        end: session S is over. Its processes with lifetime session are ended as by kill. Those that were to outlive it
        go on: they, and the notifications that S has not acknowledged, pass to its parent (run --parent-session), or to
        S2. Where there is neither, and with --keep, they stay with S. What became of each is named.

        rename: S has another name, as when a conversation was compacted. All at once, its processes and notifications
        belong to NEW, and so does what still comes under the OLD name.

        With --json an object. end: results (as of kill, one for each process that was ended), passed (id and to), left
        (the ids of those that go on as before), notifications (the ids of those that passed). rename: processes,
        notifications (ids).
    """,
    options=[
        Option("--to", metavar="S2", help="end: the session that gets what goes on. Default: the parent, if any."),
        Option("--keep", help="end: leave what goes on, and the notifications, to session S."),
        JSON,
    ],
    exits=[("0", "Done, also when the session had no processes.")],
    examples=[
        ("A conversation is over", "holdfast session end chat-42"),
        ("Which of its processes go on, and whose they are", "holdfast session end chat-42 --json | jq .passed"),
        ("A conversation goes on under another id", "holdfast session rename chat-42 chat-43"),
    ],
)


def run(given: Given) -> int:
    if given.words[:1] == ["rename"]:
        return _rename(given)
    action, session = given.only("end or rename", "S")
    if action != "end":
        raise BadValue(f"session: cannot {action[:80]!r}", next=given.usage)
    if given.to is not None and given.keep:
        raise BadValue("session: --to and --keep exclude each other", next="give one of them")
    with connect() as client:
        answer = client.end_session(session, to=given.to, keep=given.keep)
    console.out_json(answer) if given.json else _show_end(answer)
    return 0


def _show_end(answer: Message) -> None:
    for result in answer["results"]:
        console.out(f"{result['id']}: {result['status']}")
    for one in answer["passed"]:
        console.out(console.visible(f"{one['id']}: passed to {one['to']}"))
    for process_id in answer["left"]:
        console.say(f"{process_id} goes on")
    if answer["notifications"]:
        console.say(f"{len(answer['notifications'])} notifications passed on with them")


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
        console.say(f"{old} is {new} from now on: {counts}")
    return 0
