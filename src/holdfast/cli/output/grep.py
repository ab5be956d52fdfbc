"""`holdfast logs --grep`: matching lines with their context on stdout."""

from __future__ import annotations

import sys

from holdfast.cli import colours, console
from holdfast.cli.options import Option, count
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.cli.options import Given
    from holdfast.client.calls import SearchOptions
    from holdfast.client.results.search import Found, Match
    from holdfast.client.sync import Client

OPTIONS = [
    Option("--grep", metavar="RE", help="Show lines that match this regular expression (RE2 syntax)."),
    Option("-i", "--ignore-case", help="With --grep: ignore upper and lower case."),
    Option("-F", "--fixed", help="With --grep: RE is plain text, not a regular expression."),
    Option("-v", "--invert", help="With --grep: show the lines that do not match."),
    Option("-B", "--before", metavar="N", convert=count, help="With --grep: also N lines before each match."),
    Option("-A", "--after", metavar="N", convert=count, help="With --grep: also N lines after each match."),
    Option("-C", "--context", metavar="N", convert=count, help="With --grep: also N lines around each match."),
    Option("--limit", metavar="N", convert=count, help="With --grep: stop after N matches."),
    Option("--count", help="With --grep: print only the number of matching lines."),
    Option(
        "--positions",
        help="With --grep: print LINE:BYTE: before each line, counted from 0; ? if unknown.",
    ),
]

_COLOUR = f"{colours.BOLD};{colours.RED}"
_WITHOUT = ("lines", "line", "bytes", "wait")


def check(given: Given) -> None:
    """Raises BadValue for options that do not go together."""
    if given.grep is None:
        for option in OPTIONS[1:]:
            if getattr(given, option.key) not in (None, False):
                raise BadValue(f"logs: {option.names[-1]} needs --grep RE", next=given.usage)
        return
    for key in _WITHOUT:
        if getattr(given, key) is not None:
            raise BadValue(f"logs: --{key} cannot be used with --grep", next="use --from BYTE to choose where to begin")
    if given.raw:
        raise BadValue("logs: --grep searches text, not raw bytes", next="leave out --raw")
    if given.count and given.follow:
        raise BadValue("logs: --count cannot be used with -f", next="leave out one of them")


def search_options(given: Given) -> SearchOptions:
    context = given.context or 0
    return {
        "offset": getattr(given, "from"),
        "ignore_case": given.ignore_case,
        "fixed": given.fixed,
        "invert": given.invert,
        "count": given.count,
        "before": context if given.before is None else given.before,
        "after": context if given.after is None else given.after,
        "from_time": given.since,
        "to_time": given.until,
    }


def run(client: Client, process_id: str, given: Given) -> int:
    options = search_options(given)
    options["stream"] = given.stream or "out"
    matches = client.matches(process_id, given.grep, limit=given.limit, follow=given.follow, **options)
    _show_json(matches) if given.json else _show_text(matches, given)
    found = matches.found
    if given.json:
        summary = found.to_json()
        console.out_json({"matches": summary.pop("count"), **summary})
    elif given.count:
        console.out(str(found.count))
    _report(found, process_id, given)
    return 0


def _show_json(matches: Iterable[Match]) -> None:
    for match in matches:
        console.out_json(match.to_json())
        sys.stdout.flush()


def _show_text(matches: Iterable[Match], given: Given) -> None:
    """As grep does: no line twice, and `--` where lines are left out between groups of context."""
    lines = MatchedLines(given.positions, has_groups(given))
    for match in matches:
        lines.show(match)
        sys.stdout.flush()
    lines.close()


def has_groups(given: Given) -> bool:
    return bool(given.context or given.before or given.after)


class MatchedLines:
    """Matches and their context, each line once. Context after a match is kept until the next match is known.

    `out` prints a text and is given its line; None for a separator.
    """

    def __init__(
        self, positions: bool, has_groups: bool, out: Callable[[str, Match | None], None] | None = None
    ) -> None:
        self._out = out or (lambda text, _: console.out(text))
        self._positions = positions
        self._has_groups = has_groups
        self._waiting: list[Match] = []
        #: Where the last line that was shown begins, and where the one after it does.
        self._last = self._next = -1

    def show(self, match: Match) -> None:
        self._flush(match.offset)
        fresh = [line for line in match.before if line.offset > self._last]
        begins_apart = self._last >= 0 and not self._touches((fresh or [match])[0])
        if self._has_groups and begins_apart:
            self._out("--", None)
        for line in fresh:
            self._line(line, "-")
        self._line(match, ":")
        self._waiting = match.after

    def close(self) -> None:
        self._flush(None)

    def _flush(self, upto: int | None) -> None:
        waiting, self._waiting = self._waiting, []
        for line in waiting:
            if upto is not None and line.offset >= upto:
                return
            self._line(line, "-")

    def _touches(self, line: Match) -> bool:
        return line.offset <= self._next

    def _line(self, line: Match, mark: str) -> None:
        text = line.text
        if mark == ":" and line.length:
            end = line.column + line.length
            text = text[: line.column] + colours.paint(text[line.column : end], _COLOUR) + text[end:]
        where = f"{'?' if line.line is None else line.line}{mark}{line.offset}{mark}" if self._positions else ""
        self._out(f"{where}{text}{' …' if line.cut else ''}", line)
        self._last = line.offset
        self._next = (line.end or line.offset) + 1


def _report(found: Found, process_id: str, given: Given) -> None:
    if found.dropped and getattr(given, "from") is None:
        console.say(f"the first {found.dropped} bytes are no longer kept; their lines were not searched")
    if found.skipped:
        console.say(f"{found.skipped} bytes were dropped during the search")
    if found.long_lines:
        console.say(f"{found.long_lines} lines of more than 1 MiB were searched in pieces")
    if found.truncated:
        left = found.total - found.next_offset
        go_on = f"holdfast logs {process_id} --from {found.next_offset} --grep RE"
        console.say(f"stopped after {found.count} matches, {left} of {found.total} bytes are left. Next: {go_on}")
    elif not found.count and not given.count:
        console.say(f"no line matches in {found.searched} bytes")
