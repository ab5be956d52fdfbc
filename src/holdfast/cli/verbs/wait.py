"""`holdfast wait`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.cli.outcomes import TIMED_OUT, end_line, exit_status, ready_status, title
from holdfast.cli.terminal.waiting_line import WaitingLine, awaited
from holdfast.client.sync import connect
from holdfast.errors import BadValue
from holdfast.model.units import parse_seconds, parse_size, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.client.process import Process, Waited
    from holdfast.wire.frames import Message

VERB = Verb(
    "wait",
    synopsis=[
        "wait ID… [--any] [--timeout S] [--until exit|output|ready] [--json]",
        "wait ID… [--any] [--timeout S] --until match --match RE [-i] [--from BYTE] [--json]",
    ],
    about="""
        Waits until all processes (with --any: one of them) have ended, and exits with the exit code of the command. Of
        several, with the first code that is not 0, in the order of the arguments; with --any, with that of the first
        that ended. It prints on stderr how each ended.

        A timeout does not affect the process: it goes on, and you can wait again.

        On a terminal it shows meanwhile how long it has waited, for which processes, and the last line of output. A
        wait of more than 10 seconds (or of HOLDFAST_BELL seconds; 0: never) ends with a bell.

        --until output waits for new output, and exits with 0 when there is some, or when the process ends.

        --until ready waits until they are ready (run --ready-port and others), and exits with 0. If a process ends
        first, it exits at once with its exit code, or 125 in place of 0; if it was not ready within its
        --ready-timeout, with 124.

        --until match waits until a line of new output, or of output after the byte --from, matches the regular
        expression RE. It prints the line and exits with 0. If the process ends first, it exits with its exit code. Of
        several, all have to match or end; with --any, one has to match.

        With --json it prints the process object; for several IDs an array of them, in the order of the arguments. With
        --until match it has a field match: offset, match_offset, text, column, length, cut, stream; or null.
    """,
    options=[
        Option("--any", help="Wait for one of them, not for all."),
        Option(
            "--timeout",
            metavar="S",
            convert=parse_seconds,
            help="At most S seconds (or 500ms, 10m, 2h). Default: no limit.",
        ),
        Option("--until", choices=("exit", "output", "ready", "match"), help="What to wait for. Default: exit."),
        Option("--match", metavar="RE", help="The line to wait for, as a regular expression (RE2 syntax)."),
        Option("-i", "--ignore-case", help="Ignore upper and lower case."),
        Option(
            "--from",
            metavar="BYTE",
            convert=parse_size,
            help="Look at output after this byte, not only at new output.",
        ),
        JSON,
    ],
    exits=[
        ("N", "The exit code of the command."),
        ("128+N", "The command was ended by signal N."),
        ("120", "It ended; its exit code is unknown."),
        ("124", "Timeout; the process still runs."),
        (
            "125",
            "It never started, or was skipped because another process failed. With --until ready also: it ended with 0 "
            "before it was ready, or has no ready option.",
        ),
    ],
    examples=[
        ("Deploy if the tests pass", "holdfast wait tests && holdfast run -- make deploy"),
        (
            "Wait until a server prints that it listens",
            "holdfast wait web --until match --match 'listening on'",
        ),
        ("The first of two, within a minute", "holdfast wait --any --timeout 60 build lint"),
    ],
)


def run(given: Given) -> int:
    names = given.some("ID")
    until = _until(given)
    with connect() as client, WaitingLine(lambda: awaited(client, names, until), is_wanted=not given.json):
        waited = client.wait_for(
            names,
            timeout=given.timeout,
            any=given.any,
            until=until,
            after=getattr(given, "from"),
            match=given.match,
            ignore_case=given.ignore_case,
        )
    if given.json:
        objects = [_object(process, until) for process in waited.processes]
        console.out_json(objects[0] if len(names) == 1 and objects else objects)
    elif waited.matches:
        _show_matches(waited)
    report(waited, until)
    return code(waited, given.any, until)


def _until(given: Given) -> str:
    if given.match is None and given.until == "match":
        raise BadValue("wait: --until match needs --match RE", next="holdfast wait ID --until match --match RE")
    if given.match is not None and given.until not in (None, "match"):
        raise BadValue(f"wait: --match cannot be used with --until {given.until}", next=given.usage)
    if getattr(given, "from") is not None and given.match is None and given.until != "output":
        raise BadValue("wait: --from needs --until match or output", next=given.usage)
    return "match" if given.match is not None else given.until or "exit"


def _object(process: Process, until: str) -> Message:
    shown = process.to_json()
    if until == "match":
        shown["match"] = None if process.match is None else process.match.to_json()
    return shown


def _show_matches(waited: Waited) -> None:
    for process in waited.processes:
        if process.match is not None:
            console.out(f"{process.id}: {process.match.text}" if len(waited.processes) > 1 else process.match.text)


def report(waited: Waited, until: str) -> None:
    """Print how each of them ended, or its state."""
    for process in waited.processes:
        if process.match is not None:
            continue
        if process.status == "ended":
            console.say(end_line(process) + _in_vain(process, until))
        elif until == "ready" and process.ready is not None:
            console.say(f"{title(process)} {_readiness(process)}")
        elif waited.timed_out and process.id not in waited.done:
            clamped = f" (waits are limited to {waited.clamped_to:g} s)" if waited.clamped_to is not None else ""
            console.say(f"{title(process)} {_still(process)}{clamped}; wait again, or: holdfast kill {process.id}")


def _in_vain(process: Process, until: str) -> str:
    """What did not come before the end."""
    if until == "match":
        return "; no line matched"
    return ", before it was ready" if until == "ready" and not process.ready_at else ""


def _readiness(process: Process) -> str:
    if process.ready:
        return "is ready"
    return f"is {process.ready_trouble or 'not ready'}; it still runs: holdfast logs {process.id}"


def _still(process: Process) -> str:
    how = "still runs" if process.status == "running" else f"is {process.status}"
    why = f"; {process.ready_trouble}" if process.ready_trouble else ""
    return f"{how} ({size_text(process.output_bytes)} bytes of output so far{why})"


def code(waited: Waited, any: bool, until: str) -> int:
    """The exit code."""
    if waited.timed_out:
        return TIMED_OUT
    if until == "output" or (any and waited.matches):
        return 0
    status = ready_status if until == "ready" else exit_status
    ended = [process for process in waited.processes if process.id not in waited.matches]
    codes = [status(process) for process in ended if not any or process.id in waited.done[:1]]
    return next((code for code in codes if code), 0)
