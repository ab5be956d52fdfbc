"""`holdfast queue`."""

from __future__ import annotations

import time

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb, count
from holdfast.cli.outcomes import begun_at, state_text
from holdfast.client.sync import connect
from holdfast.errors import BadValue
from holdfast.model.units import age_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.process import Process
    from holdfast.wire.frames import Message

VERB = Verb(
    "queue",
    synopsis=[
        "queue [NAME] [--json]",
        "queue NAME [--limit N] [--pause | --resume] [--json]",
        "queue NAME --remove [--json]",
    ],
    about="""
        Shows the queues, or the processes of the queue NAME: which run, and which wait, in their order, and for what. A
        queue exists as soon as a process is started in it: holdfast run --queue NAME. The row "-" counts processes that
        wait for others and are in no queue.

        With options it changes the queue first, also before its first process. A queue that is paused starts nothing;
        what runs in it goes on. holdfast kill ID removes a waiting process from its queue.

        A queue ends with its last process. One that was changed stays, with its limit, until --remove.

        Waiting processes survive crashes and restarts of holdfast. After a reboot of the machine, queues with waiting
        processes are paused, so that nothing starts unasked: continue with --resume.

        With --json an array of objects, or with NAME one object: name, limit, paused, running, waiting (lists of ids);
        with --remove an object: removed.
    """,
    options=[
        Option("--limit", metavar="N", convert=count, help="How many of its processes run at once. At first 1."),
        Option("--pause", help="Start no further process of this queue."),
        Option("--resume", help="Start processes of this queue again."),
        Option("--remove", help="Forget the limit and the pause of a queue without processes."),
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
_HEAD_OF_ONE = ("STATUS", "ID", "NAME", "AGE", "WAITS FOR", "COMMAND")
_NONE = "-"
#: Verbs of pueue, which stand before the name of the queue there.
_AS_VERBS = {
    "pause": "queue {} --pause",
    "resume": "queue {} --resume",
    "start": "queue {} --resume",
    "parallel": "queue {} --limit N",
    "limit": "queue {} --limit N",
    "remove": "queue {} --remove",
    "rm": "queue {} --remove",
    "add": "run --queue {} COMMAND",
}


def run(given: Given) -> int:
    _check(given)
    changes = given.limit is not None or given.pause or given.resume
    with connect() as client:
        if given.remove:
            if not client.remove_queue(given.words[0]):
                raise _unknown(given.words[0])
            if given.json:
                console.out_json({"removed": True})
            return 0
        if changes:
            paused = True if given.pause else False if given.resume else None
            client.set_queue(given.words[0], limit=given.limit, paused=paused)
        found = client.queues()
        processes = [] if given.json else client.ps(used=False)
    if given.words:
        found = [queue for queue in found if queue["name"] == given.words[0]]
        if not found:
            raise _unknown(given.words[0])
    if given.json:
        console.out_json(found[0] if given.words else found)
    elif given.words:
        _show(found[0], {process.id: process for process in processes})
    else:
        rows = [_row(queue) for queue in found]
        others = sum(process.status == "waiting" and process.queue is None for process in processes)
        rows += [(_NONE, _NONE, _NONE, _NONE, str(others))] if others else []
        console.out(console.table(_HEAD, rows))
    return 0


def _check(given: Given) -> None:
    if len(given.words) > 1:
        meant = _AS_VERBS.get(given.words[0])
        if meant is not None and len(given.words) == 2:
            name = given.words[1][:64]
            raise BadValue(f"queue: the name comes first: {name!r}", next=f"holdfast {meant.format(name)}")
        given.only("NAME")
    if given.pause and given.resume:
        raise BadValue("queue: either --pause or --resume", next=given.usage)
    changes = given.limit is not None or given.pause or given.resume
    if given.remove and changes:
        raise BadValue("queue: --remove excludes --limit, --pause and --resume", next=given.usage)
    if (changes or given.remove) and not given.words:
        raise BadValue("queue: which queue is to be changed?", next="holdfast queue NAME --limit N")


def _unknown(name: str) -> BadValue:
    return BadValue(f"no queue {name[:80]!r}", next="holdfast queue")


def _row(queue: Message) -> tuple[str, ...]:
    state = "paused" if queue["paused"] else "active"
    return (queue["name"], str(queue["limit"]), state, str(len(queue["running"])), str(len(queue["waiting"])))


def _show(queue: Message, processes: dict[str, Process]) -> None:
    console.out(f"{queue['name']}: {'paused' if queue['paused'] else 'active'}, limit {queue['limit']}")
    shown = [processes[one] for one in (*queue["running"], *queue["waiting"]) if one in processes]
    if shown:
        now = time.time()
        rows = [_process_row(process, processes, now) for process in shown]
        console.out(console.table(_HEAD_OF_ONE, rows, drop=("AGE", "NAME")))


def _process_row(process: Process, processes: dict[str, Process], now: float) -> tuple[str, ...]:
    """`processes`: those that have not ended, by id."""
    begun = process.created_at if process.status == "waiting" else begun_at(process)
    awaited = _NONE
    if process.status == "waiting":
        others = [processes[one] for one in process.after if one in processes]
        awaited = ", ".join(one.name or one.id for one in others) or "its turn"
    age = age_text(now - begun) if begun is not None else _NONE
    return (state_text(process), process.id, process.name or _NONE, age, awaited, process.command)
