"""`holdfast logs` of several processes, or with times: whole lines, each with its process and its time."""

from __future__ import annotations

import sys

from holdfast.cli import colours, console
from holdfast.cli.outcomes import end_line
from holdfast.cli.output import grep
from holdfast.cli.output.prefixes import Prefixes
from holdfast.client.link import Output
from holdfast.client.process import Process
from holdfast.client.results.page import whole_line
from holdfast.errors import BadValue, NotFound
from holdfast.model.text import TextView, with_resets
from holdfast.model.units import moment_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    from holdfast.cli.options import Given
    from holdfast.client.reading import Followed
    from holdfast.client.results.search import Match
    from holdfast.client.sync import Client
    from holdfast.wire.frames import Message

    #: Of history: the time to order it by, and what shows it.
    Shown: TypeAlias = "tuple[float, Callable[[], None]]"

#: The most processes at once: each takes a few requests of one connection, of which a daemon serves 4096.
MOST_PROCESSES = 1000
#: Bytes of history in memory, shared by the processes, and the least for each.
_MEMORY = 16 << 20
_LEAST_PAGE = 8 << 10
_LARGEST_PAGE = 256 << 10
#: Likewise matches of --grep.
_MATCHES = 20_000
_FEWEST_MATCHES = 20

_FOR_ONE = ("from", "line", "bytes", "wait", "raw")


def check(given: Given) -> None:
    """Raises BadValue for options that do not go together."""
    for key in _FOR_ONE:
        if getattr(given, key) not in (None, False):
            raise BadValue(
                f"logs: --{key} cannot be used with -t or several processes", next="name one process, without -t"
            )
    chosen = [f"--{key}" for key in ("all", "task", "session", "project") if getattr(given, key) not in (None, False)]
    if len(chosen) > 1 and chosen != ["--task", "--session"]:
        raise BadValue(f"logs: either {chosen[0]} or {chosen[1]}, not both", next=given.usage)
    if chosen and given.words and chosen != ["--project"]:
        raise BadValue(f"logs: either names of processes or {chosen[0]}, not both", next=given.usage)


def show(client: Client, given: Given) -> int:
    selection = ProcessSelection(client, given)
    processes = selection.find()
    if len(processes) > MOST_PROCESSES:
        raise BadValue(
            f"logs: {len(processes)} processes match, at most {MOST_PROCESSES} can be shown at once",
            next="select some: --task T, --session S, or their names",
        )
    if not processes:
        console.say("no process matches" if not given.follow else "no process that matches is running")
    MergedLogs(client, given, selection, processes).run()
    return 0


class ProcessSelection:
    """The processes that the arguments select: named ones, or all that match."""

    def __init__(self, client: Client, given: Given) -> None:
        self._client = client
        self._given = given
        self._project: str | None = None
        self._task: str | None = given.task
        if given.project is not None:
            from holdfast.project.loading import load
            from holdfast.project.spec import task_of

            self._project = load(None).name if given.project == "." else given.project
            self._task = task_of(self._project)
        self.is_open = bool(given.all or self._task is not None or given.session is not None)
        self._ids: set[str] = set()

    @property
    def listed(self) -> Message | None:
        """The request that lists what runs; None if the processes are named."""
        return {"session": self._given.session, "task": self._task, "used": False} if self.is_open else None

    def find(self) -> list[Process]:
        if not self.is_open:
            named = {process.id: process for process in map(self._client.inspect, self._given.some("ID"))}
            self._ids = set(named)
            return list(named.values())
        processes = self._client.ps(
            all=not self._given.follow, session=self._given.session, task=self._task, used=False
        )
        return processes if self._project is None else self._members(processes)

    def is_chosen(self, fields: Message) -> bool:
        """Whether a process with these fields of an event, or of a process object, is selected."""
        if not self.is_open:
            return fields["id"] in self._ids
        if self._given.session not in (None, fields["session"]) or self._task not in (None, fields["task"]):
            return False
        return not (self._project and self._given.words) or self._member(fields) in self._given.words

    def label(self, process: Process) -> str:
        return self._member(process.to_json()) if self._project is not None else process.name or process.id

    def _members(self, processes: list[Process]) -> list[Process]:
        """Of several runs of one member, the newest."""
        found = {self.label(one): one for one in sorted(processes, key=lambda one: one.started_at or 0.0)}
        for word in self._given.words:
            if word not in found:
                raise NotFound(
                    f"project {self._project} has no process {word[:80]!r}",
                    next=f"one of: {', '.join(found) or 'none; holdfast up starts them'}",
                )
        return [one for name, one in found.items() if not self._given.words or name in self._given.words]

    def _member(self, fields: Message) -> str:
        """Its name in the file: processes of a project are named PROJECT.MEMBER."""
        name: str = fields["name"] or fields["id"]
        return name.removeprefix(f"{self._project}.")


class MergedLogs:
    """History first, ordered by time; with -f then output as it comes. Memory does not depend on the size of logs."""

    def __init__(self, client: Client, given: Given, selection: ProcessSelection, processes: list[Process]) -> None:
        self.client = client
        self.given = given
        self.needs_times = bool(given.timestamps or given.json)
        self._selection = selection
        labels = [selection.label(process) for process in processes]
        once: set[str] = set()
        repeated: set[str] = set()
        for label in labels:
            (repeated if label in once else once).add(label)
        self._sources = {
            process.id: LogSource(self, process, process.id if label in repeated else label)
            for process, label in zip(processes, labels, strict=True)
        }
        self._has_prefix = selection.is_open or len(processes) > 1
        self._prefixes = Prefixes(source.label for source in self._sources.values())
        self._says_unknown = True

    def run(self) -> None:
        self._show_history()
        if self.given.follow and self._sources:
            self._follow()

    # History.

    def _show_history(self) -> None:
        from heapq import merge

        count = max(1, len(self._sources))
        page = min(_LARGEST_PAGE, max(_LEAST_PAGE, _MEMORY // count))
        matches = max(_FEWEST_MATCHES, _MATCHES // count)
        parts: list[Iterator[Shown]] = []
        for source in self._sources.values():
            for stream in source.streams:
                source.find(stream)
        if self.given.grep is None:
            parts = [source.history(stream, page) for source in self._sources.values() for stream in source.streams]
        elif not self.given.follow:
            parts = [source.search(stream, matches) for source in self._sources.values() for stream in source.streams]
        for _, print_it in merge(*parts, key=lambda shown: shown[0]):
            print_it()
        sys.stdout.flush()

    # Following.

    def _follow(self) -> None:
        from holdfast.client.reading import Reading
        from holdfast.client.several import FollowedProcesses

        selection = self._selection
        parts = {source.process.id: source.parts() for source in self._sources.values()}
        followed = FollowedProcesses(parts, selection.listed, selection.is_chosen, self._take_in)
        with Reading(self.client.open_link, followed) as reading:
            while not reading.is_over:
                for process_id, item in reading.receive():
                    self._take(process_id, item)
                sys.stdout.flush()

    def _take_in(self, process: Process) -> list[Followed[Any]]:
        """A process that has just started, or was started again."""
        if process.id not in self._sources:
            taken = {source.label for source in self._sources.values()}
            label = self._selection.label(process)
            self._sources[process.id] = LogSource(self, process, process.id if label in taken else label)
        return self._sources[process.id].parts()

    def _take(self, process_id: str, item: Any) -> None:
        source = self._sources[process_id]
        if item is None:
            source.close()
            sys.stdout.flush()
            if not self._has_prefix:
                return
            try:
                console.say(end_line(self.client.inspect(process_id)))
            except NotFound:
                console.say(f"{process_id} was removed")
        elif isinstance(item, Process):
            console.say(f"{source.label} started: {process_id}")
        else:
            source.take(item)

    # Printing.

    def times(self, process_id: str, stream: str, start: int, end: int) -> list[tuple[int, float]]:
        reply = self.client.log_times(process_id, stream=stream, offset=start, upto=end)
        if not reply["known"] and self._says_unknown:
            self._says_unknown = False
            console.say(f"{process_id}: only the time of its start is known, an older keeper wrote its log")
        return [(entry["offset"], entry["time"]) for entry in reply["times"]]

    def print_line(self, source: LogSource, stream: str, offset: int, text: str, time: float | None) -> None:
        if self.given.json:
            who = {"process": source.process.id, "name": source.process.name}
            console.out_json({**who, "stream": stream, "offset": offset, "text": text, "time": time})
            return
        if time is not None and self.given.timestamps:
            at = moment_text(time)
            text = "".join([f"{at} {line}\n" for line in text.removesuffix("\n").split("\n")])
        text = with_resets(text)
        sys.stdout.write(
            self._prefixes.lines(source.label, text) if self._has_prefix else f"{text.removesuffix(_LF)}\n"
        )

    def print_match(self, source: LogSource, match: Match, time: float | None) -> None:
        who = {"process": source.process.id, "name": source.process.name}
        console.out_json({**who, **match.to_json(), "time": time})

    def print_count(self, source: LogSource, stream: str, count: int) -> None:
        if self.given.json:
            who = {"process": source.process.id, "name": source.process.name}
            console.out_json({**who, "stream": stream, "count": count})
        elif self._has_prefix:
            sys.stdout.write(self._prefixes.lines(source.label, str(count)))
        else:
            console.out(str(count))


_LF = "\n"


class LogSource:
    """One process: which part of its log was shown so far, and its unfinished lines."""

    def __init__(self, view: MergedLogs, process: Process, label: str) -> None:
        self.process = process
        self.label = label
        self._view = view
        both = ("out", "err") if process.split else ("out",)
        self.streams = both if view.given.stream is None else (view.given.stream,)
        self._lines = {stream: TimedLines() for stream in self.streams}
        self._matched = {
            stream: grep.MatchedLines(view.given.positions, grep.has_groups(view.given), self._out(stream))
            for stream in self.streams
        }
        self._match_times: list[tuple[int, float]] = []
        #: By stream: where the next output begins, and where the history ends.
        self._next = dict.fromkeys(self.streams, 0)
        self._end = dict.fromkeys(self.streams, 0)
        #: Whether the next output may begin within a line, because what came before is no longer kept.
        self._is_torn = dict.fromkeys(self.streams, False)

    def find(self, stream: str) -> None:
        """Find the part of the log that is to be shown."""
        given = self._view.given
        which: dict[str, int] = {"offset": 0} if given.lines is None else {"lines": given.lines}
        times = {"from_time": given.since, "to_time": given.until}
        part = self._view.client.logs(self.process.id, bytes=0, raw=True, stream=stream, **which, **times)  # type: ignore[arg-type]
        self._next[stream], self._end[stream] = part.start, max(part.start, part.upto)
        self._is_torn[stream] = bool(part.dropped) and part.start == part.dropped
        if self._is_torn[stream]:
            console.say(f"{self.label}: the first {part.dropped} bytes are no longer kept")

    # History: a page at a time.

    def history(self, stream: str, page_size: int) -> Iterator[Shown]:
        order = 0.0
        for offset, time, text in self._history_lines(stream, page_size):
            order = max(order, time)
            yield order, self._printer(stream, offset, text, time)

    def _history_lines(self, stream: str, page_size: int) -> Iterator[tuple[int, float, str]]:
        lines = self._lines[stream]
        while (at := self._next[stream]) < self._end[stream]:
            size = min(page_size, self._end[stream] - at)
            page = self._view.client.logs(self.process.id, offset=at, bytes=size, raw=True, stream=stream)
            if not page.data:
                break
            if page.start > at:
                console.say(f"{self.label}: {page.start - at} bytes from {at} on are no longer kept")
                yield from lines.close()
                self._is_torn[stream] = True
            self._next[stream] = page.end
            times = self._view.times(self.process.id, stream, page.start, page.end)
            cut = whole_line(page.data) if self._is_torn[stream] else 0
            self._is_torn[stream] = False
            yield from lines.feed(page.start + cut, page.data[cut:], times)
        self._next[stream] = max(self._next[stream], self._end[stream])
        if not self._view.given.follow:
            yield from lines.close()

    def _printer(self, stream: str, offset: int, text: str, time: float | None) -> Callable[[], None]:
        return lambda: self._view.print_line(self, stream, offset, text, time)

    def search(self, stream: str, page_size: int) -> Iterator[Shown]:
        given, order, shown = self._view.given, 0.0, 0
        options = grep.search_options(given)
        options["stream"] = stream
        while True:
            limit = page_size if given.limit is None else min(page_size, given.limit - shown)
            found = self._view.client.search(
                self.process.id, given.grep, limit=None if given.count else limit, **options
            )
            if given.count:
                self._view.print_count(self, stream, found.count)
                return
            shown += found.count
            times = self._times_of(stream, found.matches)
            for match in found.matches:
                order = max(order, time_at(times, match.offset) or 0.0)
                yield order, self._match_printer(stream, match, times)
            if not found.truncated or (given.limit is not None and shown >= given.limit):
                break
            options["offset"] = found.next_offset
        yield order, self._matched[stream].close

    def _times_of(self, stream: str, matches: list[Match]) -> list[tuple[int, float]]:
        """The times of matches and of their context."""
        lines = [line for match in matches for line in (*match.before, match, *match.after)]
        offsets = [line.offset for line in lines]
        return self._view.times(self.process.id, stream, min(offsets), max(offsets) + 1) if lines else []

    def _match_printer(self, stream: str, match: Match, times: list[tuple[int, float]]) -> Callable[[], None]:
        return lambda: self._show_match(stream, match, times)

    def _show_match(self, stream: str, match: Match, times: list[tuple[int, float]]) -> None:
        if self._view.given.json:
            self._view.print_match(self, match, time_at(times, match.offset))
        else:
            self._match_times = [*self._match_times[-1:], *times]
            self._matched[stream].show(match)

    def _out(self, stream: str) -> Callable[[str, Match | None], None]:
        def out(text: str, line: Match | None) -> None:
            time = None if line is None else time_at(self._match_times, line.offset)
            self._view.print_line(self, stream, 0 if line is None else line.offset, text, time)

        return out

    # Following.

    def parts(self) -> list[Followed[Any]]:
        """What to follow: from where the history ended."""
        given, process_id = self._view.given, self.process.id
        if given.grep is None:
            from holdfast.client.reading import Cursor, FollowedOutput

            cursors = [Cursor(process_id, stream, True, from_=self._next[stream]) for stream in self.streams]
            return [FollowedOutput(cursors, to_exit=True)]
        from holdfast.client.calls import matches

        options = grep.search_options(given)
        parts: list[Followed[Any]] = []
        for stream in self.streams:
            options["stream"], options["offset"] = stream, self._next[stream]
            parts.append(matches(process_id, given.grep, limit=given.limit, follow=True, **options))
        return parts

    def take(self, item: Output | Match) -> None:
        """The next output, or the next match."""
        if not isinstance(item, Output):
            self._next[item.stream] = max(self._next[item.stream], item.end or item.offset)
            self._show_match(item.stream, item, self._times_of(item.stream, [item]) if self._view.needs_times else [])
            return
        view, stream, lines = self._view, item.stream, self._lines[item.stream]
        if item.offset > self._next[stream]:
            console.say(f"{self.label}: {item.offset - self._next[stream]} bytes are no longer kept")
            self._show(stream, lines.close())
        self._next[stream] = item.end
        times = view.times(self.process.id, stream, item.offset, item.end) if view.needs_times else []
        self._show(stream, lines.feed(item.offset, item.data, times))

    def close(self) -> None:
        """It has ended: its unfinished lines are shown."""
        for stream in self.streams:
            self._show(stream, self._lines[stream].close())
            self._matched[stream].close()

    def _show(self, stream: str, lines: Iterator[tuple[int, float, str]]) -> None:
        for offset, time, text in lines:
            self._view.print_line(self, stream, offset, text, time if self._view.needs_times else None)


def time_at(times: list[tuple[int, float]], offset: int) -> float | None:
    """The time of the last entry at or before `offset`; None if there is none."""
    from bisect import bisect_right

    at = bisect_right(times, offset, key=lambda entry: entry[0])
    return times[at - 1][1] if at else None


class TimedLines:
    """Output in, lines out: (offset, time, text) of each. The unfinished line is kept."""

    def __init__(self) -> None:
        self._view = TextView(colours.are_on())
        #: Offset and time of the line that is not complete.
        self._begin: tuple[int, float] | None = None

    def feed(self, offset: int, data: bytes, times: list[tuple[int, float]]) -> Iterator[tuple[int, float, str]]:
        """`times` are entries by offset, the first for `offset`; without any, the time is 0."""
        entry = at = 0
        while at < len(data):
            end = data.find(b"\n", at) + 1 or len(data)
            while entry + 1 < len(times) and times[entry + 1][0] <= offset + at:
                entry += 1
            begin = self._begin or (offset + at, times[entry][1] if times else 0.0)
            if text := self._view.feed(data[at:end]):
                yield *begin, text
                self._begin = None
            else:
                self._begin = begin
            at = end

    def close(self) -> Iterator[tuple[int, float, str]]:
        begin, self._begin = self._begin or (0, 0.0), None
        if text := self._view.close():
            yield *begin, text
