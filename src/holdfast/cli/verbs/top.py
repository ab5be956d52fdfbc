"""`holdfast top`."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from holdfast.cli import colours, console
from holdfast.cli.options import JSON, ONLY_SESSION, ONLY_TASK, Option, Verb, parse
from holdfast.cli.watcher import Watcher
from holdfast.client.link import DaemonStopped
from holdfast.client.sync import connect
from holdfast.errors import BadValue, HoldfastError
from holdfast.model.units import age_text, parse_seconds, size_text, sparkline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.options import Given
    from holdfast.cli.terminal.live import FullScreen
    from holdfast.client.sync import Client
    from holdfast.wire.frames import Message

_SORTS = ("cpu", "memory", "started")
_INTERVAL, _SHORTEST = 2.0, 0.1
_SPARK = 12
#: Lines that are not processes: the totals, an empty line, the column names, and the keys at the bottom.
_OTHER_LINES = 4


def _interval(text: str) -> float:
    seconds = parse_seconds(text)
    if not _SHORTEST <= seconds <= 86400:
        raise BadValue(f"{text[:80]!r} is not an interval", next="write seconds, 0.1 or more")
    return seconds


VERB = Verb(
    "top",
    synopsis=["top [--sort cpu|memory|started] [--interval S] [--session S] [--task T] [--once] [--json]"],
    about="""
        Shows what each running process uses, with all its children: CPU, memory, peak memory, listening ports, age
        (since the first start), and the CPU use of the last minutes as a sparkline. On a terminal it updates every two
        seconds.

        The keys: up and down (or j and k), page up and page down, home and end select a process. Enter (or l) shows its
        output and follows it, until ^C. a attaches this terminal to it (see holdfast attach), x ends it after a
        question, / shows only processes whose id, name, command, session or task contains a text, and escape shows all
        again. c, m and s sort by CPU, memory and start time; q or ^C ends it.

        With --once, or if the output is not a terminal that can be drawn on, it is shown once. With --json an object
        per update: processes, total, cpu_percent and rss_bytes (of all).
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

_HEAD = ("ID", "NAME", "STATUS", "CPU%", "RSS", "PEAK", "PORTS", "RESTARTS", "AGE", "CPU HISTORY", "COMMAND")
#: What a narrow terminal does without, the first one first.
_DROP = ("STATUS", "ID", "PEAK", "CPU HISTORY", "RESTARTS", "PORTS", "AGE")
_KEYS = (
    "↑↓ select   enter logs   a attach   x kill   / filter   c m s sort by CPU, memory, start   q quit",
    "↑↓ select  enter logs  a attach  x kill  / filter  c m s sort  q quit",
    "↑↓ enter logs a attach x kill / q quit",
    "enter a x / q",
)
_QUIT = ("q", "\x03", "\x04")
_ESCAPE = "\x1b"


class _TopView:
    """The options of each update."""

    def __init__(self, client: Client, given: Given) -> None:
        self.client = client
        #: For what is asked again and again.
        self.watcher: Client = client
        self._given = given
        self.sort: str = given.sort or "cpu"
        self.interval: float = given.interval or _INTERVAL

    def ask(self, history: int = 60) -> Message:
        given = self._given
        return self.watcher.top(sort=self.sort, history=history, session=given.session, task=given.task)


def run(given: Given) -> int:
    given.only()
    with connect() as client:
        view = _TopView(client, given)
        if given.json and given.once:
            console.out_json(view.ask())
            return 0
        if given.json:
            with Watcher(client.session) as view.watcher:
                return _stream(view)
        if given.once or not (console.is_drawable() and sys.stdin.isatty()):
            seen = view.ask(history=_SPARK)
            console.out(f"{_sums(seen)}\n\n{_table(seen['processes'], time.time())}")
            return 0
        from holdfast.cli.terminal.live import FullScreen

        with Watcher(client.session) as view.watcher, FullScreen() as live:
            return _LiveTop(view, live).run()


def _stream(view: _TopView) -> int:
    while True:
        with suppress(DaemonStopped):  # until it is started again
            console.out_json(view.ask())
            sys.stdout.flush()
        time.sleep(view.interval)


def _sums(seen: Message) -> str:
    count = f"{seen['total']} process{'' if seen['total'] == 1 else 'es'}"
    return f"{count}, {seen['cpu_percent']:.1f} % of a CPU, {size_text(seen['rss_bytes'])} of memory"


def _table(rows: list[Message], now: float, indent: int = 0) -> str:
    from holdfast.cli.verbs.ps import port_links, short_ids

    cells = [_row(row, now) for row in rows]
    there = [at for at, name in enumerate(_HEAD) if name != "RESTARTS" or any(row[at] != "-" for row in cells)]
    head = [_HEAD[at] for at in there]
    return console.table(
        head,
        [[row[at] for at in there] for row in cells],
        lambda row, column: colours.PLAIN,
        drop=[name for name in _DROP if name in head],
        short={"ID": short_ids([row["id"] for row in rows])},
        link=lambda name, text: port_links(text) if name == "PORTS" else text,
        indent=indent,
    )


def _row(row: Message, now: float) -> tuple[str, ...]:
    begun = row.get("created_at") if row.get("restarts") else row["started_at"]
    return (
        row["id"],
        row["name"] or "-",
        row["status"],
        _known(row["cpu_percent"], "{:.1f}".format),
        _known(row["rss_bytes"], size_text),
        _known(row["peak_rss_bytes"], size_text),
        " ".join(map(str, row["ports"] or ())) or "-",
        str(row.get("restarts") or "-"),
        _known(begun, lambda at: age_text(now - at)),
        sparkline(row["history"]["cpu_percent"], _SPARK, 100.0),
        row["command"],
    )


def _known(value: float | None, text: Callable[..., str]) -> str:
    return "-" if value is None else text(value)


class _LiveTop:
    """The live list: which processes are shown, which one is selected, and what the keys do."""

    def __init__(self, view: _TopView, live: FullScreen) -> None:
        self._view = view
        self._live = live
        self._seen: Message = view.ask(history=_SPARK)
        self._filter = ""
        #: The id of the selected process: it stays selected when the order changes.
        self._selected: str | None = None
        self._first = 0
        self._message = ""

    def run(self) -> int:
        due = time.monotonic() + self._view.interval
        while True:
            if (now := time.monotonic()) >= due:
                self._refresh()
                due = now + self._view.interval
            self._draw()
            key = self._live.key(max(0.0, due - time.monotonic()))
            if key in _QUIT:
                return 0
            if key:
                self._message = ""
                due = 0.0 if self._press(key) else due

    def _refresh(self) -> None:
        try:
            self._seen = self._view.ask(history=_SPARK)
        except DaemonStopped as stopped:
            self._message = stopped.message

    # What is shown.

    @property
    def _rows(self) -> list[Message]:
        """The processes that match the filter."""
        wanted = self._filter.casefold()
        return [row for row in self._seen["processes"] if not wanted or wanted in _searched(row)]

    @property
    def _height(self) -> int:
        return max(1, console.terminal_size()[1] - _OTHER_LINES)

    def _position(self, rows: list[Message]) -> int:
        """Where the selected process is; the nearest one is selected where it is gone."""
        return next((at for at, row in enumerate(rows) if row["id"] == self._selected), min(self._first, len(rows) - 1))

    def _draw(self, bottom: str = "") -> None:
        rows, height, cols = self._rows, self._height, console.terminal_size()[0]
        at = max(0, self._position(rows))
        self._selected = rows[at]["id"] if rows else None
        self._first = max(0, min(self._first, at, len(rows) - height), at - height + 1)
        shown = rows[self._first : self._first + height]
        head, *lines = _table(shown, time.time(), indent=2).split("\n")
        lines = [_marked(line, row["id"] == self._selected, cols) for line, row in zip(lines, shown, strict=True)]
        lines += [""] * (height - len(lines))
        keys = bottom or self._message or next((keys for keys in _KEYS if len(keys) <= cols), _KEYS[-1])
        page = [console.shortened(self._title(rows), cols), "", f"  {head}", *lines, console.shortened(keys, cols)]
        self._live.draw("\n".join(page))

    def _title(self, rows: list[Message]) -> str:
        more = f"; {self._first + 1}-{min(len(rows), self._first + self._height)} of {len(rows)} shown"
        found = f"; filter: {console.visible(self._filter)}, {len(rows)} found" if self._filter else ""
        return f"{_sums(self._seen)}{found}{more if len(rows) > self._height else ''}; by {self._view.sort}"

    # Keys.

    def _press(self, key: str) -> bool:
        """Whether to ask the daemon again at once."""
        sorts = {name[0]: name for name in _SORTS}
        if key in sorts:
            self._view.sort = sorts[key]
            return True
        if key in ("/", _ESCAPE):
            self._filter = ""
            if key == "/":
                self._type_filter()
            return False
        if (step := self._step(key)) is not None:
            self._move(step)
            return False
        return self._act(key)

    def _step(self, key: str) -> int | None:
        everything = len(self._seen["processes"])
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -self._height, "page down": self._height}
        steps |= {" ": self._height, "home": -everything, "g": -everything, "end": everything, "G": everything}
        return steps.get(key)

    def _move(self, step: int) -> None:
        rows = self._rows
        if rows:
            self._selected = rows[max(0, min(len(rows) - 1, self._position(rows) + step))]["id"]

    def _type_filter(self) -> None:
        while True:
            self._draw(f"Filter: {console.visible(self._filter)}_   enter: done, escape: all")
            key = self._live.key(self._view.interval)
            if key in ("enter", "\x03"):
                return
            if key == _ESCAPE:
                self._filter = ""
                return
            if key == "backspace":
                self._filter = self._filter[:-1]
            elif len(key) == 1 and key.isprintable():
                self._filter += key
            if not key:
                self._refresh()

    def _act(self, key: str) -> bool:
        """Something with the selected process."""
        row = next((row for row in self._rows if row["id"] == self._selected), None)
        if row is None or key not in ("enter", "l", "a", "x"):
            return False
        try:
            if key == "x":
                self._kill(row)
            elif key == "a":
                self._live.paused(lambda: _call("attach", row["id"]))
            else:
                self._live.paused(lambda: _call("logs", "-f", "-n", str(self._height), row["id"]))
        except HoldfastError as error:
            self._message = console.visible(f"{error.message}. Next: {error.next}")
        return True

    def _kill(self, row: Message) -> None:
        what = f"{row['name']} ({row['id']})" if row["name"] else row["id"]
        self._draw(console.visible(f"End {what} and all its children? y: yes, other keys: no"))
        while not (answer := self._live.key(self._view.interval)):
            pass
        if answer not in ("y", "Y"):
            self._message = "not ended"
            return
        self._draw(f"ending {what} …")
        (result,) = self._view.client.kill(row["id"])
        survivors = f"; still alive: pid {', '.join(map(str, result.survivors))}" if result.survivors else ""
        self._message = f"{what}: {result.status}{', SIGKILL was needed' if result.forced else ''}{survivors}"


def _searched(row: Message) -> str:
    return "\n".join([str(row.get(key) or "") for key in ("id", "name", "command", "session", "task")]).casefold()


def _marked(line: str, is_selected: bool, cols: int) -> str:
    """The line with its mark; the selected one is reversed over the whole width."""
    if not is_selected:
        return f"  {line}"
    return colours.paint(f"> {line}{' ' * max(0, cols - 2 - console.width(line))}", "7")


def _call(verb: str, *words: str) -> None:
    """Another verb on this terminal, until it ends or is interrupted. Raises HoldfastError."""
    module = __import__(f"holdfast.cli.verbs.{verb}", fromlist=["VERB"])
    try:
        if verb == "logs":
            console.say("^C: back to the list")
        module.run(parse(module.VERB, list(words)))
        sys.stdout.flush()
        if verb == "logs":
            console.say("the output has ended; enter: back to the list")
            sys.stdin.readline()
    except KeyboardInterrupt:
        pass
