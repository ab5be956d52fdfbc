"""`holdfast logs`."""

from __future__ import annotations

import time
from binascii import b2a_base64

from holdfast.cli import chosen, colours, console
from holdfast.cli.options import JSON, Option, Verb, count
from holdfast.cli.output import grep
from holdfast.cli.output.pieces import JsonPieces, RawPieces, TextPieces
from holdfast.client.reading import Cursor, FollowedOutput, Reading
from holdfast.client.results.page import line_start, whole_line
from holdfast.client.sync import connect
from holdfast.errors import BadValue
from holdfast.model.units import parse_seconds, parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.cli.output.pieces import OutputPieces
    from holdfast.client.link import Output
    from holdfast.client.sync import Client
    from holdfast.wire.frames import Message


def _moment(text: str) -> float:
    from holdfast.model.units import parse_moment

    return parse_moment(text, time.time())


VERB = Verb(
    "logs",
    synopsis=[
        "logs [ID] [-f] [-n LINES] [--from BYTE] [--line N] [--bytes N] [--wait S] [--raw] [--json]",
        "logs ID… [-f] [-t] [-n LINES] [--since TIME] [--until TIME] [--json]",
        "logs [--all] [--task T] [--session S] [--project P [NAME…]] [-f] [-t] [-n LINES] [--json]",
        "logs [ID] --grep RE [-f] [-i] [-F] [-v] [-A N] [-B N] [-C N] [--limit N] [--count] [--json]",
    ],
    about="""
        Shows the output of a running or ended process: all that is kept, unless options select a part. If output is no
        longer kept, a message on stderr says how many bytes. Offsets count bytes from the start of the process and
        never change.

        Without ID it takes the only process that runs, else the last one that was started, and says which on stderr. If
        $HOLDFAST_SESSION is set, only processes of that session count.

        By default it shows text: without escape codes, and of a line that was overwritten many times (a progress bar)
        only the first and the last state with a count. On a terminal colours are kept, unless NO_COLOR is set. --raw
        shows the exact bytes.

        -f follows new output until the process has ended.

        Of several processes it shows whole lines, ordered by time, each with the name of its process. --all, --task,
        --session and --project select running and ended processes; with -f running ones and those that start
        meanwhile. -f ends when none of them runs any more; each end is a message on stderr. -n, --since, --until and
        --grep hold for each process.

        -t shows the local time at which each line began, exact to 100 ms. --since and --until show the lines that began
        between these times: a duration ago (10m), a local time (2026-11-17T10:00) or Unix seconds.

        --from BYTE --wait S waits up to S seconds for output after that byte, if there is none.

        --grep RE shows the lines that match a regular expression, without colours. RE2 syntax: no look-around, no
        back-references, always linear time.

        With --json one object: text (with --raw: data, in base64), start, end, total, dropped, omitted, cursor (where
        the next page begins: --from), closed, note; {"unchanged": true, …} if --wait found nothing new. It holds up to
        1 MiB, or --bytes. With -f, an object per line: stream, offset, text.

        With -t or several processes, --json is an object per line of output: process, name, stream, offset, text, time.

        With --grep --json an object per match: line, offset, match_offset, text, column, length, cut, before, after;
        then a summary: matches, searched, truncated, next_offset, dropped, skipped.
    """,
    options=[
        Option("-f", "--follow", help="Follow new output until the process has ended."),
        Option(
            "-n",
            "--tail",
            "--lines",
            metavar="LINES",
            convert=count,
            help="The last LINES lines; with --line, LINES from there.",
        ),
        Option("--from", metavar="BYTE", convert=parse_size, help="Begin at this byte."),
        Option("--line", metavar="N", convert=count, help="Begin at line N. The first line that is kept is line 0."),
        Option(
            "--bytes",
            metavar="N",
            convert=parse_size,
            help="At most N bytes: with --from, --line or -n from there on, else the last ones; text in whole lines.",
        ),
        Option(
            "--wait",
            metavar="S",
            convert=parse_seconds,
            help="With --from: wait up to S seconds for output after it.",
        ),
        Option("-t", "--timestamps", help="Show when each line began, in local time."),
        Option("--since", metavar="TIME", convert=_moment, help="Only lines since then: 10m, 2026-11-17T10:00, Unix."),
        Option("--until", metavar="TIME", convert=_moment, help="Only lines up to then."),
        Option("--all", help="Of all processes."),
        Option("--task", metavar="T", help="Of the processes of task T."),
        Option("--session", metavar="S", help="Of the processes of session S."),
        Option(
            "--project",
            metavar="P",
            help="Of project P, as holdfast up names it; . is the project of the file here. NAME…: of these members.",
        ),
        *grep.OPTIONS,
        Option("--raw", help="Show the exact bytes."),
        Option(
            "--stream",
            choices=("out", "err"),
            help="The stream of a process started with --split. Default: out. Without --split, out holds both.",
        ),
        JSON,
    ],
    exits=[("0", "Shown. holdfast wait reports how the process ended.")],
    examples=[
        ("The last lines, and new output", "holdfast logs -f -n 20 web"),
        ("What a project writes, with times", "holdfast logs -f -t --project ."),
        ("The last ten minutes of two processes", "holdfast logs --since 10m web worker"),
        ("Errors, with the line before each", "holdfast logs web --grep 'ERROR|panic' -B 1"),
        ("The exact bytes since an offset", "holdfast logs --raw --from 52104 web"),
    ],
)

#: Seconds without output after which an incomplete line is shown.
_MOMENT = 0.1


def run(given: Given) -> int:
    _check(given)
    selected = given.all or given.task is not None or given.session is not None or given.project is not None
    with connect() as client:
        if selected or given.timestamps or len(given.words) > 1:
            from holdfast.cli.output import merged

            if not selected and not given.words:
                given.words.append(chosen.one(client, given))
            merged.check(given)
            return merged.show(client, given)
        process_id = chosen.one(client, given)
        if given.grep is not None:
            return grep.run(client, process_id, given)
        if given.wait is not None:
            _await(client, process_id, given)
        if given.json and not given.follow:
            return _page(client, process_id, given)
        return _stream(client, process_id, given)


def _check(given: Given) -> None:
    start = getattr(given, "from")
    grep.check(given)
    if given.wait is not None and (start is None or given.follow):
        raise BadValue("logs: --wait needs --from BYTE, and cannot be used with -f", next=given.usage)
    if start is not None and (given.lines is not None or given.line is not None):
        raise BadValue("logs: --from cannot be used with -n or --line", next=given.usage)
    if given.follow and given.line is not None:
        raise BadValue("logs: -f cannot be used with --line", next="use -f with --from BYTE or -n LINES")
    if given.follow and given.until is not None:
        raise BadValue("logs: -f cannot be used with --until", next="leave out one of them")
    if given.line is not None and (given.since is not None or given.until is not None):
        raise BadValue("logs: --line cannot be used with --since or --until", next="use -n LINES")


def _page(client: Client, process_id: str, given: Given) -> int:
    page = client.logs(
        process_id,
        lines=given.lines,
        line=given.line,
        offset=getattr(given, "from"),
        bytes=given.bytes,
        raw=given.raw,
        stream=given.stream or "out",
        wait=given.wait,
        from_time=given.since,
        to_time=given.until,
    )
    if given.wait is not None and page.unchanged:
        console.out_json({"unchanged": True, "cursor": page.cursor, "closed": page.closed})
        return 0
    shown = page.to_json()
    if given.raw:
        del shown["text"]
        shown["data"] = b2a_base64(page.data, newline=False).decode()
    console.out_json(shown)
    return 0


def _await(client: Client, process_id: str, given: Given) -> None:
    """Wait until there is output to show."""
    if not given.json:
        start, stream = getattr(given, "from"), given.stream or "out"
        page = client.logs(process_id, offset=start, bytes=1, raw=True, stream=stream, wait=given.wait)
        if page.unchanged:
            console.say(f"nothing new after byte {page.cursor}{'; the output has ended' if page.closed else ''}")


def _stream(client: Client, process_id: str, given: Given) -> int:
    stream = given.stream or "out"
    start, limit, is_tail = getattr(given, "from"), given.bytes, False
    if start is None and given.lines is None and given.line is None:
        start = 0
        if limit is not None:
            start, is_tail = _tail(client, process_id, stream, given)
            limit = None if given.follow else limit + is_tail
        elif given.since is not None:
            start = None  # it begins at that time; nothing is missing before it
    asked = {"lines": given.lines, "line": given.line, "bytes": limit, "to_time": given.until}
    cursor = Cursor(process_id, stream, given.follow, from_=start, from_time=given.since, **asked)
    pieces = JsonPieces(given.raw) if given.json else RawPieces() if given.raw else _text_pieces(given)
    with Reading(client.open_link, FollowedOutput([cursor], to_exit=given.follow)) as reading:
        begin, end = _show(reading, pieces, start, is_tail, is_page=given.bytes is not None and not given.follow)
    answer = reading.answer or {}
    if not given.follow and (given.lines is not None or given.line is not None or given.bytes is not None):
        _say_omitted({**answer, **({} if end is None else {"end": end})}, begin, process_id, stream)
    process = answer.get("process") or {}
    if process.get("split") and given.stream is None:
        console.say(f"stderr has its own log: holdfast logs --stream err {process['id']}")
    return 0


def _text_pieces(given: Given) -> OutputPieces:
    return TextPieces(in_place=bool(given.follow) and console.is_drawable(), colours=colours.are_on())


def _tail(client: Client, process_id: str, stream: str, given: Given) -> tuple[int, bool]:
    """Where the last bytes begin. For text one byte earlier, to see whether a line begins there, and True."""
    times = {"from_time": given.since, "to_time": given.until}
    part = client.logs(process_id, offset=0, bytes=0, raw=True, stream=stream, **times)
    start = max(part.start, part.upto - given.bytes)
    is_earlier = not given.raw and start > part.start
    return start - is_earlier, is_earlier


def _show(
    reading: Reading[Output], pieces: OutputPieces, start: int | None, is_tail: bool, is_page: bool
) -> tuple[int | None, int | None]:
    """Where the shown output begins, None if there was none, and where a page of text was cut to whole lines, if so."""
    expected = before = start
    begin = line_end = None
    while not reading.is_over:
        pieces_now = reading.receive(_MOMENT if pieces.has_more and not is_page else None)
        for piece in pieces_now:
            gap, expected = expected is not None and piece.offset > expected, piece.end
            if gap:
                _pass_gap(before, piece, pieces)
            before = piece.end
            if is_tail:
                _cut_to_line(piece)
                is_tail = False
            begin = piece.offset if begin is None and piece.data else begin
            if newline := piece.data.rfind(b"\n") + 1:
                line_end = piece.offset + newline
            pieces.show(piece)
        if not pieces_now and not is_page:
            pieces.rest()
    answer = reading.answer or {}
    is_cut = is_page and pieces.by_line and line_end is not None and answer["end"] < (answer.get("upto") or 0)
    pieces.close(whole=is_cut)
    return begin, line_end if is_cut else None


def _cut_to_line(piece: Output) -> None:
    cut = line_start(piece.data)
    piece.data, piece.offset = piece.data[cut:], piece.offset + cut


def _pass_gap(before: int | None, piece: Output, pieces: OutputPieces) -> None:
    """Continue after dropped output; text continues with the next whole line."""
    pieces.skip()
    kept = piece.offset
    if pieces.by_line:
        cut = whole_line(piece.data)
        piece.data, piece.offset = piece.data[cut:], piece.offset + cut
    console.say_dropped(before or 0, kept, piece.offset)


def _say_omitted(answer: Message, begin: int | None, process_id: str, stream: str) -> None:
    end, first, total = (answer.get(key) or 0 for key in ("end", "first", "total"))
    start = end if begin is None else begin
    if omitted := max(0, start - first) + max(0, total - end):
        which = " --stream err" if stream == "err" else ""
        rest = f"holdfast logs {process_id}{which} --from {first if start > first else end}"
        console.say(f"bytes {start} to {end} of {total} are shown, {omitted} are not; the rest: {rest}")
