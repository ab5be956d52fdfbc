"""Operations that read output: logs and search."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import Flag, Integer, ProcessRef, Seconds, Size, Text, Time
    from holdfast.ops.records import MatchFields, ProcessFields, SearchPositionFields, TimeEntryFields

#: The most lines of context of a match.
MOST_CONTEXT = 100
_REF = "An id, a name, or a unique prefix of either (of an id 4 hex digits or more)."
_FROM_TIME = "Only lines that began at this time or later, in Unix seconds; exact to 100 ms."
_TO_TIME = "Only lines that began at this time or earlier, in Unix seconds."
_STREAM = "`err` only for a process that was started with `split`."


class Logs(Operation):
    """Read output: from a byte, from a line, the last lines, or as it comes. The bytes are sent before the reply."""

    process: ProcessRef = field(help=_REF)
    stream: Literal["out", "err"] = field("out", help=_STREAM)
    from_: Size | None = field(None, help="Begin at this byte: the `next_offset` of the previous page.")
    line: Integer | None = field(None, help="Begin at this line, counted from 0.")
    lines: Integer | None = field(None, help="Number of lines: with `line` from there on, else the last ones.")
    bytes: Size | None = field(None, help="The most bytes to return.")
    from_time: Time | None = field(None, help=_FROM_TIME)
    to_time: Time | None = field(None, help=_TO_TIME)
    follow: Flag = field(False, help="Keep sending output as it comes.")
    until: Literal["exit", "closed"] = field(
        "closed",
        help="With `follow`: until the process has ended and what it wrote was sent, or until no process can write any "
        "more.",
    )
    wait: Seconds | None = field(None, help="Seconds to wait for output after `from`, if there is none yet.")
    beyond: Size | None = field(
        None, help="With `wait`: wait for output after this byte instead, if it is greater than `from`."
    )
    consume: Flag = field(
        False, help="If the owner session reads the end of an ended process, it is not notified of that end."
    )

    class Reply(Record):
        start: Size = field(help="The offset of the first byte that was sent.")
        end: Size = field(help="The offset after the last byte that was sent.")
        first: Size = field(help="The first byte that is still kept.")
        total: Size = field(help="Bytes written in all.")
        upto: Size | None = field(None, help="Where the requested part ends; null with `follow`.")
        closed: Flag = field(help="Whether no more output can come.")
        skipped: Size = field(0, help="Bytes that were dropped before they were read.")
        process: ProcessFields | None = field(None)
        unchanged: Flag = field(
            False, help="With `wait`: no output came; the reply then has `id` and `status` instead of `process`."
        )
        clamped_to: Seconds | None = field(
            None, help="The limit in seconds that the daemon used instead of `wait`; null if none."
        )
        consumes: list[Text] = field((), help="As in `wait`.")

    traits = Traits(
        reads=True,
        streams=True,
        scope=Scope.PROCESS,
        route="GET /processes/{process}/log",
        http_name="getLog",
        names={"from": "offset"},
    )


class LogTimes(Operation):
    """When output arrived: the times of a part of a log, exact to 100 ms, and the sizes of its terminal.

    Bytes from the `offset` of an entry on arrived at its `time`. The first entry is for the begin of the part.
    """

    process: ProcessRef = field(help=_REF)
    stream: Literal["out", "err"] = field("out", help=_STREAM)
    from_: Size = field(0, help="Begin at this byte.")
    upto: Size | None = field(None, help="End at this byte. Default: the end of the log.")

    class Reply(Record):
        times: list[TimeEntryFields] = field(help="By offset.")
        known: Flag = field(help="False if an older keeper wrote the log: then only the time of the start is known.")

    traits = Traits(
        reads=True,
        scope=Scope.PROCESS,
        route="GET /processes/{process}/log/times",
        http_name="getLogTimes",
        positional=("process",),
        names={"from": "offset"},
    )


class Search(Operation):
    """Search a log for lines that match a pattern, page by page; with `follow`, wait for the next match."""

    process: ProcessRef = field(help=_REF)
    pattern: Text | None = field(None, longest=65536, help="An RE2 pattern. Required.")
    stream: Literal["out", "err"] = field("out", help=_STREAM)
    ignore_case: Flag = field(False, help="Ignore upper and lower case.")
    fixed: Flag = field(False, help="The pattern is plain text, not a regular expression.")
    invert: Flag = field(False, help="Return the lines that do not match.")
    count: Flag = field(False, help="Return only the number of matches.")
    limit: Integer | None = field(None, least=1, most=1 << 53, help="The most matches to return.")
    before: Integer = field(0, most=MOST_CONTEXT, help="Lines of context before each match.")
    after: Integer = field(0, most=MOST_CONTEXT, help="Lines of context after each match.")
    from_: Size | None = field(None, help="Begin at this byte.")
    line: Integer | None = field(
        None, help="Begin at this line, counted from 0; with `from`, the number of the line there."
    )
    upto: Size | None = field(None, help="End at this byte.")
    from_time: Time | None = field(None, help=_FROM_TIME)
    to_time: Time | None = field(None, help=_TO_TIME)
    follow: Flag = field(False, help="Wait for a match if there is none yet.")
    wait: Seconds | None = field(None, help="With `follow`: seconds to wait. Default: 30.")

    class Reply(Record):
        matches: list[MatchFields] = field()
        count: Integer = field(help="The number of matches.")
        done: Flag = field(help="Whether the search reached the end.")
        next: SearchPositionFields = field(help="Where the next page begins.")
        upto: Size | None = field(help="The byte at which the search ends.")
        start: Size = field(help="The byte at which it began.")
        searched: Size = field(help="Bytes that were searched.")
        skipped: Size = field(help="Bytes that were dropped before they were searched.")
        long_lines: Integer = field(help="Lines of more than 1 MiB, which are searched in pieces.")
        first: Size = field(help="The first byte that is still kept.")
        total: Size = field(help="Bytes written in all.")

    traits = Traits(
        reads=True,
        waits=True,
        scope=Scope.PROCESS,
        route="GET /processes/{process}/search",
        http_name="searchLog",
        names={"from": "offset"},
    )
