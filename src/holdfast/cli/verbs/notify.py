"""`holdfast notify`."""

from __future__ import annotations

from holdfast.cli import colours, console
from holdfast.cli.options import JSON, Option, Verb, count
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.sync import Client
    from holdfast.wire.frames import Message

VERB = Verb(
    "notify",
    synopsis=[
        "notify list [--json]",
        "notify test [SINK] [--json]",
        "notify dead [--json]",
        "notify retry [ENTRY…] [--all] [--json]",
    ],
    about="""
        Sinks are [[sinks]] tables in config.toml: a name, a target (url for Apprise, webhook, or desktop = true), and
        which notifications to send (kinds, sessions, outcomes, quiet hours). See docs/sinks.md.

        list shows each sink with its state: ok, quiet (quiet hours), failing (the last attempt failed and will be
        repeated), off, or gone (no longer configured, with unsent messages). test sends a message to one sink or to
        all, and prints the results. Messages that were refused or failed too often are kept: dead lists them, and retry
        sends them again. Secrets are never shown.

        With --json list prints an array of sinks, test of results (sink, sent, error, took), dead of entries (id, sink,
        notification, kind, process, session, at, attempts, error, dead_at); retry prints retried and unknown.
    """,
    options=[Option("--all", help="With retry: all dead messages."), JSON],
    exits=[("0", "Done; test: all messages were sent.")],
    examples=[
        ("Send a test message to the sink phone", "holdfast notify test phone"),
        ("Send all dead messages again", "holdfast notify retry --all"),
    ],
)


def run(given: Given) -> int:
    action, *words = given.some("list, test, dead or retry")
    act = {"list": _list, "test": _test, "dead": _dead, "retry": _retry}.get(action)
    if act is None:
        raise BadValue(f"notify: cannot {action[:80]!r}", next="list, test, dead or retry")
    if given.all and action != "retry":
        raise BadValue("notify: --all is for retry", next="holdfast notify retry --all")
    most = {"test": 1, "retry": 1000}.get(action, 0)
    if len(words) > most:
        raise BadValue(f"notify: unexpected argument {words[most][:80]!r}", next=given.usage)
    with connect() as client:
        return act(client, given, words)


def _list(client: Client, given: Given, words: list[str]) -> int:
    sinks = client.sinks()
    if given.json:
        console.out_json(sinks)
        return 0
    if not sinks:
        console.say(f"no sink is configured: add [[sinks]] to {client.paths.config}")
        return 0
    rows = [
        (*(str(sink[key] or "-") for key in ("name", "state", "to")), *_figures(sink), _trouble(sink)) for sink in sinks
    ]
    colour = {"ok": colours.GREEN, "failing": colours.RED}
    console.out(
        console.table(
            ("NAME", "STATE", "TO", "SENT", "PENDING", "DEAD", "LAST ERROR"),
            rows,
            lambda row, column: colour.get(rows[row][1], colours.PLAIN) if column == 1 else colours.PLAIN,
        )
    )
    return 0


def _figures(sink: Message) -> tuple[str, ...]:
    return tuple(str(sink[key]) for key in ("sent", "pending", "dead"))


def _trouble(sink: Message) -> str:
    return str(sink["last_error"] or "-") if sink["state"] in ("failing", "gone") else "-"


def _test(client: Client, given: Given, words: list[str]) -> int:
    results = client.sink_test(words[0] if words else None)
    if given.json:
        console.out_json(results)
    for result in results:
        if not result["sent"]:
            console.say(f"{result['sink']}: not sent: {result['error']}", colours.RED)
        elif not given.json:
            console.out(f"{result['sink']}: sent")
    return 0 if all(result["sent"] for result in results) else 125


def _dead(client: Client, given: Given, words: list[str]) -> int:
    entries = client.sink_dead()
    if given.json:
        console.out_json(entries)
    elif not entries:
        console.say("there are no dead messages")
    else:
        keys = ("id", "sink", "kind", "process", "attempts", "error")
        rows = [[str(entry[key] or "-") for key in keys] for entry in entries]
        console.out(console.table(("ENTRY", "SINK", "KIND", "PROCESS", "TRIES", "ERROR"), rows))
    return 0


def _retry(client: Client, given: Given, words: list[str]) -> int:
    if given.all == bool(words):
        raise BadValue("notify: retry needs ENTRY or --all", next="holdfast notify dead")
    answer = client.sink_retry(*(count(word) for word in words), all=given.all)
    if given.json:
        console.out_json(answer)
    else:
        for entry in answer["retried"]:
            console.out(str(entry))
        if not answer["retried"] and given.all:
            console.say("there are no dead messages")
    if answer["unknown"]:
        console.say(f"no such entry: {', '.join(map(str, answer['unknown']))}. Next: holdfast notify dead", colours.RED)
        return 125
    return 0
