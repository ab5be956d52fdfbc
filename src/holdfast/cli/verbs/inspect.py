"""`holdfast inspect`."""

from __future__ import annotations

from holdfast.cli import chosen, console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.wire.frames import Message

VERB = Verb(
    "inspect",
    synopsis=["inspect [ID] [--seen TOKEN] [--json]"],
    about="""
        Shows the process object of a running or ended process: command, directory, state or how it ended, size of its
        output; of a running one also memory, CPU time, ports and its process tree (with --json in tree: pid, ppid,
        name, cpu_seconds, rss_bytes).

        Without ID it takes the only process that runs, else the last one that was started, and says which on stderr. If
        $HOLDFAST_SESSION is set, only processes of that session count.

        Times are unix seconds, sizes are bytes. Unknown values are left out; with --json they are null.

        With --json there is also the field seen. With --seen TOKEN the result is {"unchanged": true} while nothing but
        CPU time and memory has changed.
    """,
    options=[
        Option("--seen", metavar="TOKEN", help="Only if it changed since: the field seen of an earlier result."),
        JSON,
    ],
    exits=[("0", "Shown.")],
    examples=[
        ("A process by its name", "holdfast inspect web"),
        ("Its pid, for a program", "holdfast inspect --json web | jq .pid"),
    ],
)


def run(given: Given) -> int:
    with connect() as client:
        process = client.look(chosen.one(client, given), given.seen, tree=True)
    if process is None:
        console.out_json({"unchanged": True}) if given.json else console.say("unchanged")
        return 0
    if given.json:
        console.out_json({**process.to_json(), "seen": process.seen})
        return 0
    known = {key: value for key, value in process.to_json().items() if key != "tree" and value not in (None, [], {})}
    width = max(map(len, known))
    for key, value in known.items():
        console.out(f"{key:{width}}  {console.visible(_shown(value))}")
    if process.tree:
        console.out("")
        console.out(console.table(("PID", "PPID", "CPU", "RSS", "NAME"), [_member(member) for member in process.tree]))
    return 0


def _member(member: Message) -> tuple[str, ...]:
    from holdfast.model.units import size_text

    cpu = f"{member['cpu_seconds']:.2f}s"
    return (str(member["pid"]), str(member["ppid"]), cpu, size_text(member["rss_bytes"]), member["name"])


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(f"{key}={_shown(entry)}" for key, entry in value.items() if entry not in (None, [], {}))
    if isinstance(value, list):
        return " ".join(word if isinstance(word, str) and word and " " not in word else repr(word) for word in value)
    return str(value)
