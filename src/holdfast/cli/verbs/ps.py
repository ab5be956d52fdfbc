"""`holdfast ps`."""

from __future__ import annotations

import os
import sys
import time

from holdfast.cli import colours, console
from holdfast.cli.options import JSON, ONLY_SESSION, ONLY_TASK, Option, Verb, count
from holdfast.cli.outcomes import begun_at, colour, state_text
from holdfast.cli.versions import say_older_parts
from holdfast.cli.watcher import Watcher
from holdfast.client.fields import PROCESS_FIELDS, PROCESS_STATUSES
from holdfast.client.link import DaemonStopped
from holdfast.client.sync import connect
from holdfast.errors import BadValue
from holdfast.model.units import age_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from holdfast.cli.options import Given
    from holdfast.client.process import Process
    from holdfast.client.sync import Client
    from holdfast.wire.frames import Message

#: Other names of fields, to sort by.
_SORT_NAMES = {"cpu": "cpu_seconds", "memory": "rss_bytes", "output": "output_bytes", "age": "created_at"}
#: Status words of other tools, and the filter that selects the same here.
_STATUS_WORDS = {
    "exited": "status=ended",
    "failed": "reason=exited --filter exit_code!=0",
    "up": "status=running",
    "stopped": "status=ended",
}
#: With a filter on one of these, ended processes are listed, too.
_OF_ENDED = frozenset({"reason", "exit_code", "signal", "ended_at", "gave_up", "killed_by", "forced"})
_ALL_FIELDS = "holdfast ps --json shows all fields"
#: Seconds between two updates of --watch.
_INTERVAL = 1.0
_QUIT = ("q", "\x03", "\x04")


def _filter(text: str) -> tuple[str, bool, str]:
    """`K=V` or `K!=V` -> the field, whether it must be equal, the value."""
    key, equals, value = text.partition("=")
    is_equal = not key.endswith("!")
    key = key.removesuffix("!")
    if not equals:
        raise BadValue(f"{text[:80]!r} is not a filter", next="write it as FIELD=VALUE, for example status=ended")
    if key.partition(".")[0] not in PROCESS_FIELDS:
        raise BadValue(f"a process has no field {key[:80]!r}{_nearest(key, PROCESS_FIELDS)}", next=_ALL_FIELDS)
    if key == "status" and value not in PROCESS_STATUSES:
        meant = f" (did you mean --filter {_STATUS_WORDS[value]}?)" if value in _STATUS_WORDS else ""
        raise BadValue(f"no status is {value[:80]!r}{meant}", next=f"one of: {', '.join(PROCESS_STATUSES)}")
    return key, is_equal, value


def _sort_key(text: str) -> tuple[str, bool]:
    """`K` or `-K` -> the field, and whether the largest comes first."""
    name = text.removeprefix("-")
    key = _SORT_NAMES.get(name, name)
    if key not in PROCESS_FIELDS:
        meant = _nearest(name, sort_names())
        raise BadValue(
            f"cannot sort by {text[:80]!r}{meant}", next=f"cpu, memory, output, age, or a field: {_ALL_FIELDS}"
        )
    return key, name != text


def sort_names() -> list[str]:
    return [*_SORT_NAMES, *PROCESS_FIELDS]


def filters() -> list[str]:
    """What a filter may begin with."""
    fields = [f"{field}=" for field in PROCESS_FIELDS if field != "status"]
    return [*(f"status={status}" for status in PROCESS_STATUSES), *fields]


def _nearest(word: str, known: Sequence[str]) -> str:
    from holdfast.cli.help import similar

    return similar.nearest(word, known)


VERB = Verb(
    "ps",
    synopsis=[
        "ps [ID…] [-a] [-q] [--session S] [--task T] [--filter K=V]… [--sort K] [-n N] [--watch] [--json]",
        "ps --short [--session S] [--task T] [--json]",
    ],
    about="""
        Lists running processes of all sessions, oldest first. With -a also ended ones that are still kept. With IDs
        only these processes, running or ended.

        The columns: id, name, state or how it ended, age (since the first start; of an ended process until its end),
        session, bytes of output, command. READY, RESTARTS, PORTS, ENDED and BACKEND are there if a process has
        them; BACKEND is where it runs, if that is not this machine. A terminal that is too narrow shows fewer columns,
        and short ids. Output to a file or pipe is never cut.

        A running process is shown as asks if it waits for input, as stalled if it has no output and no CPU use (see
        run --stall), as trouble if there is a problem in running it, and as stale if it is very old; holdfast why ID
        says more.

        --filter selects by any field of the process object: FIELD=VALUE, or FIELD!=VALUE. The value of command is a
        part of the command; of a list, one of its entries; yes and no stand for true and false, or for whether there
        is a value; labels.NAME is a label. A filter on how processes ended, or status=ended, lists ended ones, too.

        --watch shows the list again and again until q or ^C. If the output is not a terminal, it prints a line for each
        process, and another one whenever its state changes.

        --short prints one line such as "2 running, 1 failed" for a prompt of a shell; nothing if nothing runs and
        nothing failed in the last 30 minutes. It starts no daemon. With --json an object: running, waiting, asking,
        stalled, failed.

        With --json an array of process objects; with --watch an object per line and change.
    """,
    options=[
        Option("-a", "--all", help="Also ended processes."),
        Option("-q", "--quiet", help="Print only the ids."),
        ONLY_SESSION,
        ONLY_TASK,
        Option(
            "--filter", metavar="K=V", convert=_filter, repeat=True, help="Only those whose field K has the value V."
        ),
        Option(
            "--sort",
            metavar="K",
            convert=_sort_key,
            help="Sort by a field of the process object, or by cpu, memory, output or age; -K: the largest first.",
        ),
        Option("-n", "--last", metavar="N", convert=count, help="The last N to be started; with --sort, the first N."),
        Option("--watch", help="Update until q or ^C."),
        Option("--short", help="One line with numbers, for a prompt."),
        JSON,
    ],
    exits=[("0", "Listed, also if there are none.")],
    examples=[
        ("Running processes", "holdfast ps"),
        ("The last five that failed", "holdfast ps --filter reason=exited --filter exit_code!=0 -n 5"),
        ("The largest memory use first", "holdfast ps --sort -memory"),
        ("The ids of failed processes", "holdfast ps -a --json | jq -r '.[] | select(.exit_code > 0) | .id'"),
    ],
)


def run(given: Given) -> int:
    if given.short:
        given.only()
        return _short(given)
    with connect() as client:
        if given.watch:
            return _watch(client, given)
        processes = _selected(client, given)
        say_older_parts(client.greeting)
    if given.json:
        console.out_json([process.to_json() for process in processes])
    elif given.quiet:
        for process in processes:
            console.out(process.id)
    else:
        console.out(_table(processes, time.time()))
    return 0


# Selecting.


def _selected(client: Client, given: Given, all: bool | None = None) -> list[Process]:
    """The processes that the options select, in their order. `all`: also ended ones, in any case."""
    of_ended = any(
        key in _OF_ENDED or (key == "status" and (value != "running") == is_equal)
        for key, is_equal, value in given.filter
    )
    if given.words:
        found = [client.inspect(name) for name in given.words]
    else:
        found = client.ps(all=all or given.all or of_ended, session=given.session, task=given.task)
    chosen = [process for process in found if all_match(process.to_json(), given.filter)]
    if given.sort is not None:
        key, is_descending = given.sort
        known = [process for process in chosen if process.to_json()[key] is not None]
        known.sort(key=lambda process: _comparable(process.to_json()[key]), reverse=is_descending)
        return [*known, *(one for one in chosen if one.to_json()[key] is None)][: given.last]
    return chosen if given.last is None else chosen[max(0, len(chosen) - given.last) :]


def all_match(fields: Message, filters: list[tuple[str, bool, str]]) -> bool:
    return all(_matches(fields, key, value) == is_equal for key, is_equal, value in filters)


def _matches(fields: Message, key: str, text: str) -> bool:
    first, _, rest = key.partition(".")
    value: Any = fields.get(first)
    if rest:
        value = value.get(rest) if isinstance(value, dict) else None
    if first == "command":
        return text in str(value)
    if isinstance(value, list):
        return any(str(entry) == text for entry in value) or (text in _WORDS and bool(value) == _WORDS[text])
    if isinstance(value, (bool, dict, type(None))):
        return text in _WORDS and bool(value) == _WORDS[text]
    return str(value) == text or (isinstance(value, float) and _number(text) == value)


_WORDS = {"yes": True, "true": True, "no": False, "false": False, "null": False, "": False}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _comparable(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else str(value) if isinstance(value, dict) else value


# Showing.

_HEAD = (
    "ID",
    "NAME",
    "STATUS",
    "READY",
    "RESTARTS",
    "AGE",
    "ENDED",
    "PORTS",
    "BACKEND",
    "SESSION",
    "OUTPUT",
    "COMMAND",
)
#: Columns that are there only where a process has a value.
_OPTIONAL = frozenset({"READY", "RESTARTS", "ENDED", "PORTS", "BACKEND"})
#: What a narrow terminal does without, the first one first.
_DROP = ("BACKEND", "OUTPUT", "SESSION", "ID", "STATUS", "RESTARTS", "ENDED", "PORTS", "READY", "AGE")
_NONE = "-"
#: Digits of a short id.
_SHORTEST_ID, _ID_LENGTH = 6, 12


def _table(processes: list[Process], now: float) -> str:
    rows = [_row(process, now) for process in processes]
    there = [at for at, name in enumerate(_HEAD) if name not in _OPTIONAL or any(row[at] != _NONE for row in rows)]
    head, status = [_HEAD[at] for at in there], there.index(_HEAD.index("STATUS"))
    return console.table(
        head,
        [[row[at] for at in there] for row in rows],
        lambda row, column: colour(processes[row]) if column == status else colours.PLAIN,
        drop=[name for name in _DROP if name in head],
        short={
            "ID": short_ids([process.id for process in processes]),
            "STATUS": [state_text(process).partition(",")[0] for process in processes],
        },
        link=_linked if colours.links_are_on() else None,
    )


def _linked(name: str, text: str) -> str:
    return port_links(text) if name == "PORTS" else text


def port_links(text: str) -> str:
    """Ports in a text as links to this machine."""
    words = (colours.link(word, f"http://localhost:{word}") if word.isdigit() else word for word in text.split(" "))
    return " ".join(words)


def short_ids(ids: list[str]) -> list[str]:
    """Ids without `proc_`, and no longer than needed to tell them apart."""
    digits = [one.removeprefix("proc_") for one in ids]
    for length in range(_SHORTEST_ID, _ID_LENGTH):
        if len({one[:length] for one in digits}) == len(set(digits)):
            return [one[:length] for one in digits]
    return digits


def _row(process: Process, now: float) -> tuple[str, ...]:
    begun, ended, is_over = begun_at(process), process.ended_at, process.status == "ended"
    return (
        process.id,
        process.name or _NONE,
        state_text(process),
        _NONE if is_over or process.ready_by is None else _READY[process.ready],
        str(process.restarts or _NONE),
        age_text((ended or now) - begun) if begun is not None and (ended is not None or not is_over) else _NONE,
        f"{age_text(now - ended)} ago" if ended is not None else _NONE,
        " ".join(map(str, process.ports or ())) or _NONE,
        _NONE if process.backend == "local" else process.backend,
        process.session,
        size_text(process.output_bytes or 0),
        process.command,
    )


_READY = {True: "yes", False: "no", None: "not yet"}


# --watch.


def _watch(client: Client, given: Given) -> int:
    with Watcher(client.session) as watcher:
        if given.json or not (console.is_drawable() and sys.stdin.isatty()):
            return _print_changes(watcher, given)
        return _redraw(watcher, given)


def _redraw(client: Client, given: Given) -> int:
    from holdfast.cli.terminal.live import FullScreen

    with FullScreen() as live:
        while True:
            try:
                processes, now = _selected(client, given), time.time()
            except DaemonStopped as stopped:
                live.draw(f"{console.shortened(stopped.message, console.terminal_size()[0])}\n\n{stopped.next}")
                if live.key(_INTERVAL) in _QUIT:
                    return 0
                continue
            rows = max(1, console.terminal_size()[1] - 3)
            more = f"; {len(processes) - rows} more do not fit" if len(processes) > rows else ""
            title = f"{_clock(now)}  {_many(len(processes))}{more}   q: quit"
            cut = processes[:rows] if given.sort is not None else processes[-rows:]
            live.draw(f"{console.shortened(title, console.terminal_size()[0])}\n\n{_table(cut, now)}")
            if live.key(_INTERVAL) in _QUIT:
                return 0


def _print_changes(client: Client, given: Given) -> int:
    """A line for each process, and for each change of its state, until the reader is gone."""
    shown: dict[str, tuple[object, ...]] = {}
    is_first = True
    while True:
        try:
            processes, now = _selected(client, given, all=True), time.time()
        except DaemonStopped:  # until it is started again
            time.sleep(_INTERVAL)
            continue
        for process in processes:
            state = (state_text(process), process.ready, process.restarts, process.ports)
            if shown.get(process.id) == state:
                continue
            shown[process.id] = state
            if is_first and process.status == "ended" and not given.all:
                continue
            if given.json:
                console.out_json(process.to_json())
            else:
                name, status = process.name or _NONE, state_text(process)
                console.out(console.visible(f"{_clock(now)}  {process.id}  {name}  {status}  {process.command}"))
        sys.stdout.flush()
        is_first = False
        time.sleep(_INTERVAL)


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _many(count: int) -> str:
    return f"{count} process{'' if count == 1 else 'es'}"


# --short.


_COUNTED = ("running", "waiting", "asking", "stalled", "failed")


def _short(given: Given) -> int:
    """Numbers, from a daemon that runs: it is not started for this, and an error is not shown in a prompt."""
    from holdfast.cli.help.candidates import ask_running
    from holdfast.errors import HoldfastError

    if given.filter or given.watch or given.sort or given.all or given.last is not None:
        raise BadValue("ps: --short cannot be used with other options than --session, --task, --json", next=given.usage)
    try:
        if os.environ.get("HOLDFAST_URL"):
            with connect() as client:
                counts = client.counts(session=given.session, task=given.task)
        else:
            counts = ask_running("counts", {"session": given.session, "task": given.task})
    except HoldfastError as error:
        if error.code == "bad_value":
            raise
        counts = {}
    if given.json:
        console.out_json({key: counts.get(key, 0) for key in _COUNTED})
        return 0
    line = ", ".join([f"{counts[key]} {key}" for key in _COUNTED if counts.get(key)])
    if line:
        console.out(line)
    return 0
