"""Operations that read output: logs and search."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import Flag, Integer, ProcessRef, Seconds, Size, Text
    from holdfast.ops.records import MatchFields, ProcessFields, SearchPositionFields

#: The most lines of context of a match.
MOST_CONTEXT = 100
_REF = "An id, a unique prefix of one (4 hex digits or more), or a name."
_STREAM = "Of a process that was started with `split`."


class Logs(Operation):
    """Output: from a byte, from a line, the last lines, or as it comes. The bytes are sent before the reply."""

    process: ProcessRef = field(help=_REF)
    stream: Literal["out", "err"] = field("out", help=_STREAM)
    from_: Size | None = field(None, help="Begin at this byte: the `next_offset` of the page before.")
    line: Integer | None = field(None, help="Begin at this line, counted from 0.")
    lines: Integer | None = field(None, help="So many lines: with `line` from there on, else the last ones.")
    bytes: Size | None = field(None, help="At most so many bytes.")
    follow: Flag = field(False, help="Go on as more comes.")
    wait: Seconds | None = field(None, help="Seconds to wait for output behind `from`, where there is none yet.")
    beyond: Size | None = field(None, help="With `wait`: for output behind this byte, where it lies behind `from`.")
    consume: Flag = field(
        False, help="The owner who is shown the end of an ended process is not notified of it any more."
    )

    class Reply(Record):
        start: Size = field()
        end: Size = field()
        first: Size = field(help="Output before this byte was dropped.")
        total: Size = field(help="How much was ever written.")
        closed: Flag = field(help="Nothing more can follow.")
        skipped: Size = field(0, help="Bytes that were dropped before they were read.")
        process: ProcessFields | None = field(None)
        unchanged: Flag = field(False, help="With `wait`: nothing came; `id` and `status` take the process's place.")
        clamped_to: Seconds | None = field(None, help="The daemon's limit, where it was less than `wait`.")
        consumes: list[Text] = field((), help="As in wait.")

    traits = Traits(streams=True, scope=Scope.PROCESS, route="GET /processes/{process}/log", http_name="getLog")


class Search(Operation):
    """The lines of a log that match a pattern, a page at a time; with `follow`, as they come."""

    process: ProcessRef = field(help=_REF)
    pattern: Text | None = field(None, longest=65536, help="An RE2 pattern; it has to be given.")
    stream: Literal["out", "err"] = field("out", help=_STREAM)
    ignore_case: Flag = field(False, help="Capital letters match small ones.")
    fixed: Flag = field(False, help="The pattern is a text, not an expression.")
    invert: Flag = field(False, help="The lines that do not match.")
    count: Flag = field(False, help="Only count.")
    limit: Integer | None = field(None, least=1, most=1 << 53, help="At most so many matches.")
    before: Integer = field(0, most=MOST_CONTEXT, help="So many lines before each match.")
    after: Integer = field(0, most=MOST_CONTEXT, help="So many lines after each match.")
    from_: Size | None = field(None, help="Begin at this byte.")
    line: Integer | None = field(None, help="Begin at this line, or the number of the line at `from`.")
    upto: Size | None = field(None, help="End at this byte.")
    follow: Flag = field(False, help="Wait for a match that is yet to come.")
    wait: Seconds | None = field(None, help="With `follow`: so many seconds; 30 unless given.")

    class Reply(Record):
        matches: list[MatchFields] = field()
        count: Integer = field()
        done: Flag = field(help="Whether all of it was searched.")
        next: SearchPositionFields = field(help="Where the next page begins.")
        upto: Size | None = field()
        start: Size = field()
        searched: Size = field(help="Bytes.")
        skipped: Size = field(help="Bytes that were dropped before they were searched.")
        long_lines: Integer = field(help="Lines that were too long to be searched as a whole.")
        first: Size = field()
        total: Size = field()

    traits = Traits(waits=True, scope=Scope.PROCESS, route="GET /processes/{process}/search", http_name="searchLog")
