"""`holdfast top`."""

from __future__ import annotations

import os
import sys
import time

from holdfast.cli import console
from holdfast.cli.options import JSON, ONLY_SESSION, ONLY_TASK, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue
from holdfast.model.units import age_text, parse_seconds, size_text, sparkline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.options import Given
    from holdfast.client.sync import Client
    from holdfast.wire.frames import Message

_SORTS = ("cpu", "memory", "started")
_INTERVAL, _SHORTEST = 2.0, 0.1
_SPARK = 12
#: Lines above the processes: the totals, an empty line, the column names.
_HEAD_LINES = 3


def _interval(text: str) -> float:
    seconds = parse_seconds(text)
    if not _SHORTEST <= seconds <= 86400:
        raise BadValue(f"{text[:80]!r} is not an interval", next="write seconds, 0.1 or more")
    return seconds


VERB = Verb(
    "top",
    synopsis=["top [--sort cpu|memory|started] [--interval S] [--session S] [--task T] [--once] [--json]"],
    about="""
        Shows what each running process uses, with all its children: CPU, memory, peak memory, listening ports, and the
        CPU use of the last minutes as a sparkline. On a terminal it updates every two seconds until q or ^C; c, m and s
        sort by CPU, memory and start time.

        With --once, or if the output is not a terminal, it is shown once. With --json an object per update: processes,
        total, cpu_percent and rss_bytes (of all).
    """,
    options=[
        Option("--sort", choices=_SORTS, help="What to sort by. Default: cpu."),
        Option("--interval", metavar="S", convert=_interval, help="Seconds between updates. Default: 2."),
        ONLY_SESSION,
        ONLY_TASK,
        Option("--once", help="Show it once and exit."),
        JSON,
    ],
    exits=[("0", "Shown.")],
    examples=[
        ("The largest memory use first", "holdfast top --sort memory"),
        ("Listening ports, for a program", "holdfast top --once --json | jq '.processes[] | {name, ports}'"),
    ],
)

_HEAD = ("ID", "NAME", "STATUS", "CPU%", "RSS", "PEAK", "PORTS", "UP", "CPU HISTORY", "COMMAND")


class _TopView:
    """The options of each update."""

    def __init__(self, client: Client, given: Given) -> None:
        self._client = client
        self._given = given
        self.sort: str = given.sort or "cpu"
        self.interval: float = given.interval or _INTERVAL

    def ask(self, limit: int = 0, history: int = 60) -> Message:
        given = self._given
        return self._client.top(sort=self.sort, limit=limit, history=history, session=given.session, task=given.task)


def run(given: Given) -> int:
    given.only()
    with connect() as client:
        view = _TopView(client, given)
        if given.json:
            return _stream(view, given.once)
        if given.once or not (sys.stdout.isatty() and sys.stdin.isatty()):
            console.out(page(view.ask(history=_SPARK), time.time()))
            return 0
        return _live(view)


def _stream(view: _TopView, once: bool) -> int:
    while True:
        console.out_json(view.ask())
        sys.stdout.flush()
        if once:
            return 0
        time.sleep(view.interval)


def page(seen: Message, now: float) -> str:
    """The totals, and a row for each process."""
    count = f"{seen['total']} process{'' if seen['total'] == 1 else 'es'}"
    sums = f"{count}, {seen['cpu_percent']:.1f} % of a CPU, {size_text(seen['rss_bytes'])} of memory"
    return f"{sums}\n\n{console.table(_HEAD, [_row(row, now) for row in seen['processes']])}"


def _row(row: Message, now: float) -> tuple[str, ...]:
    return (
        row["id"],
        row["name"] or "-",
        row["status"],
        _known(row["cpu_percent"], "{:.1f}".format),
        _known(row["rss_bytes"], size_text),
        _known(row["peak_rss_bytes"], size_text),
        " ".join(map(str, row["ports"] or ())) or "-",
        _known(row["started_at"], lambda at: age_text(now - at)),
        sparkline(row["history"]["cpu_percent"], _SPARK, 100.0),
        row["command"],
    )


def _known(value: float | None, text: Callable[..., str]) -> str:
    return "-" if value is None else text(value)


def _live(view: _TopView) -> int:
    from holdfast.cli.live import FullScreen

    def frame() -> str:
        rows = max(1, os.get_terminal_size(1).lines - _HEAD_LINES)
        return page(view.ask(limit=rows, history=_SPARK), time.time())

    sorts = {name[0]: name for name in _SORTS}
    with FullScreen() as live:
        while True:
            live.draw(frame())
            key = live.key(view.interval)
            if key in ("q", "\x03", "\x04"):
                return 0
            view.sort = sorts.get(key, view.sort)
