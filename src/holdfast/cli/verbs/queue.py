"""`holdfast queue`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb, count
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.wire.frames import Message

VERB = Verb(
    "queue",
    synopsis=["queue [NAME] [--json]", "queue NAME [--limit N] [--pause | --resume] [--json]"],
    about="""
        Shows the queues, or the queue NAME: how many of its processes run at once, which run, and which wait, in their
        order. A queue exists as soon as a process is started in it: holdfast run --queue NAME.

        With options it changes the queue first. A queue that is paused starts nothing; what runs in it goes on.
        holdfast kill ID removes a waiting process from its queue.

        Waiting processes survive crashes and restarts of holdfast. After a reboot of the machine, queues with waiting
        processes are paused, so that nothing starts unasked: continue with --resume.

        With --json an array of objects, or with NAME one object: name, limit, paused, running, waiting (lists of ids).
    """,
    options=[
        Option("--limit", metavar="N", convert=count, help="How many of its processes run at once. At first 1."),
        Option("--pause", help="Start no further process of this queue."),
        Option("--resume", help="Start processes of this queue again."),
        JSON,
    ],
    exits=[("0", "Shown, or changed.")],
    examples=[
        ("Two builds, one after the other", "holdfast run --queue build make a; holdfast run --queue build make b"),
        ("Run up to four of them at once", "holdfast queue build --limit 4"),
        ("What waits", "holdfast queue"),
    ],
)

_HEAD = ("QUEUE", "LIMIT", "STATE", "RUNNING", "WAITING")


def run(given: Given) -> int:
    if len(given.words) > 1:
        given.only("NAME")
    if given.pause and given.resume:
        raise BadValue("queue: either --pause or --resume", next=given.usage)
    changes = given.limit is not None or given.pause or given.resume
    if changes and not given.words:
        raise BadValue("queue: which queue is to be changed?", next="holdfast queue NAME --limit N")
    with connect() as client:
        if changes:
            paused = True if given.pause else False if given.resume else None
            client.set_queue(given.words[0], limit=given.limit, paused=paused)
        found = client.queues()
    if given.words:
        found = [queue for queue in found if queue["name"] == given.words[0]]
        if not found:
            raise BadValue(f"no queue {given.words[0][:80]!r}", next="holdfast queue")
    if given.json:
        console.out_json(found[0] if given.words else found)
    elif given.words:
        _show(found[0])
    else:
        console.out(console.table(_HEAD, [_row(queue) for queue in found]))
    return 0


def _row(queue: Message) -> tuple[str, ...]:
    state = "paused" if queue["paused"] else "active"
    return (queue["name"], str(queue["limit"]), state, str(len(queue["running"])), str(len(queue["waiting"])))


def _show(queue: Message) -> None:
    console.out(f"{queue['name']}: {'paused' if queue['paused'] else 'active'}, limit {queue['limit']}")
    for state in ("running", "waiting"):
        for process_id in queue[state]:
            console.out(f"  {state}  {process_id}")
