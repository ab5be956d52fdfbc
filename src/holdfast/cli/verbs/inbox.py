"""`holdfast inbox`."""

from __future__ import annotations

import sys
import time

from holdfast.cli import colours, console
from holdfast.cli.options import JSON, SESSION, Option, Verb, count
from holdfast.cli.terminal.waiting_line import WaitingLine
from holdfast.client.sync import connect
from holdfast.errors import BadValue, NotFound
from holdfast.model.units import age_text, parse_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.results.notification import Notification
    from holdfast.client.sync import Client

VERB = Verb(
    "inbox",
    synopsis=["inbox [ID…] [-v] [--for PROCESS] [--session S] [--wait S] [--ack] [--limit N] [--json]"],
    about="""
        Shows the notifications of a session that are not acknowledged, oldest first: ends of its processes, matches of
        watches, progress, and that a process is ready, has stalled, needs input or passed its deadline. They are kept
        on disk, and are shown again until they are acknowledged. What a wait of the same session answered is not
        shown.

        Each is one line: its id, its age, the process, and what happened. With -v, or for the notifications with these
        IDs, also when, where and the last output.

        With --wait it shows what is there, and waits until there is a notification that is newer than the last start of
        this session; so after run -d --notify it ends with the process. With --for it waits for a notification of that
        process. With --json it waits only if there is none. After S seconds it returns with what there is.

        With --ack the printed notifications are acknowledged, and never delivered again. Several callers with --ack
        never get the same notification. Without --ack nothing changes: see holdfast ack.

        With --json an array of notification objects: id, key (the same for the same notification, for deduplication),
        kind, process, session, origin, at, text (a block for a model, with output quoted), summary (a line), data.
    """,
    options=[
        Option("-v", "--verbose", help="Show the details of each."),
        Option("--for", metavar="PROCESS", help="Only notifications of this process."),
        SESSION,
        Option(
            "--wait",
            metavar="S",
            convert=parse_seconds,
            help="Wait at most S seconds (or 500ms, 10m, 2h) for a new one. Default: do not wait.",
        ),
        Option("--ack", help="Acknowledge the printed notifications."),
        Option("--limit", metavar="N", convert=count, help="At most N, the oldest. Default: 1000."),
        JSON,
    ],
    exits=[("0", "Shown, also if there is none.")],
    examples=[
        ("Pending notifications", "holdfast inbox"),
        ("The end of a build, with the last output", "holdfast inbox --for build --wait 1h -v"),
        ("Wait up to an hour for the next one, and acknowledge it", "holdfast inbox --wait 1h --limit 1 --ack --json"),
    ],
)

_NAMED = 3
_MOST = 1000
_LONGEST_NAME = 17
_LONGEST_COMMAND = 80
_WARNINGS = ("stalled", "deadline", "input_needed", "watch_disabled", "watch_overflow_tripped")
#: A narrow terminal has no ids of notifications, and then short ids of processes, so that the event has this width.
_ID, _PROCESS, _EVENT = 0, 2, 3
_LEAST_EVENT = 24


def run(given: Given) -> int:
    if given.limit == 0:
        raise BadValue("inbox: --limit must be 1 or more", next=given.usage)
    if given.words and (given.wait is not None or getattr(given, "for") is not None):
        raise BadValue("inbox: IDs cannot be used with --wait or --for", next=given.usage)
    with connect(given.session) as client:
        if given.words:
            found = _named(client, given)
            _show(found, given)
        elif given.wait is None or given.json:
            found = _read(client, given, given.wait or 0.0)
            _show(found, given)
        else:
            found = _until_new(client, given)
        if found and given.ack:
            sys.stdout.flush()
            client.ack(*found)
        elif found and not given.json:
            _say_how(found)
        elif not found and not given.json:
            _say_why(client, getattr(given, "for"))
    return 0


def _read(
    client: Client, given: Given, wait: float, limit: int | None = None, since: float | None = None
) -> list[Notification]:
    limit = given.limit if limit is None else limit
    return client.inbox(wait=wait, limit=limit, take=given.ack, process=getattr(given, "for"), since=since)


def _named(client: Client, given: Given) -> list[Notification]:
    """The notifications with these ids, or whose ids begin so. Raises NotFound."""
    pending = client.inbox(take=given.ack)
    found = {word: [one for one in pending if one.id.startswith(word)] for word in given.words}
    for word, matching in found.items():
        if len(matching) != 1:
            how = "no notification" if not matching else f"{len(matching)} notifications"
            raise NotFound(f"{how} {word[:40]!r} in this inbox", next="holdfast inbox shows the ids")
    return list({matching[0].id: matching[0] for matching in found.values()}.values())


def _until_new(client: Client, given: Given) -> list[Notification]:
    """Shows those that are pending, and waits where all are older than the last start; shows what comes then."""
    last_start = 0.0
    if getattr(given, "for") is None:
        started = [process.started_at or 0.0 for process in client.ps(all=True, session=client.session, used=False)]
        last_start = max(started, default=0.0)
    found = _read(client, given, 0.0)
    _show(found, given)
    left = (given.limit or _MOST) - len(found)
    if left > 0 and not any(one.at >= last_start for one in found):
        sys.stdout.flush()
        with WaitingLine(lambda: "a notification", is_wanted=True):
            new = _read(client, given, given.wait, left, last_start)
        _show(new, given)
        found += new
    return found


def _show(found: list[Notification], given: Given) -> None:
    if given.json:
        console.out_json([one.to_json() for one in found])
    elif given.verbose or given.words:
        for one in found:
            _show_details(one)
    elif found:
        from holdfast.cli.verbs.ps import short_ids

        rows = [_row(one) for one in found]
        ids = [row[_PROCESS] for row in rows if row[_PROCESS].startswith("proc_")]
        short = dict(zip(ids, short_ids(ids), strict=True))
        levels = [_level(one) for one in found]
        table = console.table(
            None,
            rows,
            lambda row, column: levels[row] if column == _EVENT else "",
            drop=(str(_ID), str(_PROCESS)),
            short={str(_PROCESS): [short.get(row[_PROCESS], row[_PROCESS]) for row in rows]},
            least=_LEAST_EVENT,
        )
        console.out(table)


def _row(one: Notification) -> tuple[str, str, str, str]:
    """Id, age, process, event."""
    command = " ".join(str(one.data.get("command") or "").split())
    event = one.fields.get("event") or one.summary  # an older daemon has only the summary
    what = f"{event}: {console.brief(command, _LONGEST_COMMAND)}" if command and event != one.summary else event
    process = console.brief(str(one.data.get("name") or one.process or "-"), _LONGEST_NAME)
    return one.id, f"{age_text(time.time() - one.at)} ago", process, what


def _level(one: Notification) -> str:
    if one.kind == "completion":
        return colours.PLAIN if one.data.get("succeeded") else colours.RED
    return colours.YELLOW if one.kind in _WARNINGS else colours.PLAIN


def _show_details(one: Notification) -> None:
    data = one.data
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.at))
    console.out(console.visible("  ".join(_row(one))))
    fields = {"process": one.process, "name": data.get("name"), "command": data.get("command")}
    fields |= {"session": one.session, "kind": one.kind, "at": at}
    for name in ("reason", "exit_code", "signal", "pattern", "prompt"):
        fields[name] = data.get(name)
    for name, value in fields.items():
        if value is not None:
            console.out(f"    {name:<10} {console.brief(console.visible_lines(str(value)))}")
    if output := str(data.get("output") or "").rstrip("\n"):
        console.out(
            "    output" + (f"     the end; all of it: holdfast logs {one.process}" if data.get("output_cut") else "")
        )
        for line in console.visible_lines(output).split("\n"):
            console.out(f"        {line}")


def _say_why(client: Client, process: str | None) -> None:
    """There is none: because the process belongs to another session, or, on a terminal, just so."""
    if process is not None and (owner := client.inspect(process).session) != client.session:
        console.say(f"{process} belongs to session {owner}: holdfast inbox --session {owner} --for {process}")
    elif console.is_drawable():
        console.say("no notifications")


def _say_how(found: list[Notification]) -> None:
    ids = " ".join(one.id for one in found[:_NAMED])
    how = f"holdfast ack {ids}" if len(found) <= _NAMED else "holdfast inbox --ack"
    console.say(f"{len(found)} to be acknowledged: {how}")
