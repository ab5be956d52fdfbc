"""`holdfast wait`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.cli.outcomes import TIMED_OUT, end_line, exit_status, ready_status, title
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
        Waits until all of the processes (with --any: one of them) have ended, and ends with the code of the command
        itself. Of several, it is the first code that is not 0, in the order of the arguments; with --any, that of the
        first that ended. How each ended is said on stderr.

        A wait that runs out is no error of the process: it goes on, and can be waited for again.

        With --until output it waits for new output instead, and ends with 0 when there is some. A process that ends
        first is not waited for any longer.

        With --until ready it waits until they are ready by what they were started with (run --ready-port and others),
        and ends with 0 when they are. One that ends first is reported at once, with its code, and 125 in place of 0;
        one that was not ready within its --ready-timeout, with 124.

        With --until match it waits until a line matches the regular expression RE, in what is written from now on or,
        with --from, behind that byte (--from 0: also in what is there). It prints the line and ends with 0. A process
        that ends first is not waited for any longer: that is said, and its code is the result. Of several, all have to
        match or end; with --any, one has to match.

        With --json the process object is printed; for several IDs an array of them, in the order of the arguments. With
        --until match it has a field match: offset, match_offset, text, column, length, cut, stream; or null.
    """,
    options=[
        Option("--any", help="Until one of them is done, not all."),
        Option(
            "--timeout",
            metavar="S",
            convert=parse_seconds,
            help="At most S seconds (or 500ms, 10m, 2h). Default: for ever.",
        ),
        Option("--until", choices=("exit", "output", "ready", "match"), help="What to wait for. Default: exit."),
        Option("--match", metavar="RE", help="The line to wait for, as a regular expression (RE2)."),
        Option("-i", "--ignore-case", help="Letters match whether small or capital."),
        Option("--from", metavar="BYTE", convert=parse_size, help="Also search the output behind this byte."),
        JSON,
    ],
    exits=[
        ("N", "The command's own exit code."),
        ("128+N", "The command was ended by signal N."),
        ("120", "It ended, and its exit code is unknown."),
        ("124", "The time ran out; it still runs."),
        ("125", "With --until ready: it ended with 0 before it was ready, or has nothing to be ready by."),
    ],
    examples=[
        ("Go on when the tests are through, if they pass", "holdfast wait tests && holdfast run -- make deploy"),
        (
            "Go on when a server says that it is up",
            "holdfast wait web --until match --match 'listening on'",
        ),
        ("Whichever of two is done first, within a minute", "holdfast wait --any --timeout 60 build lint"),
    ],
)


def run(given: Given) -> int:
    names = given.some("ID")
    until = _until(given)
    with connect() as client:
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
        raise BadValue("wait: which line? --match is missing", next="holdfast wait ID --until match --match RE")
    if given.match is not None and given.until not in (None, "match"):
        raise BadValue(f"wait: --match does not go with --until {given.until}", next=given.usage)
    if getattr(given, "from") is not None and given.match is None and given.until != "output":
        raise BadValue("wait: --from goes with --until match or output", next=given.usage)
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
    """Say how each of them ended, and what became of those that did not."""
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
    """What was waited for, and did not come before the end."""
    if until == "match":
        return "; it wrote no line that matches"
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
    """What the call ends with."""
    if waited.timed_out:
        return TIMED_OUT
    if until == "output" or (any and waited.matches):
        return 0
    status = ready_status if until == "ready" else exit_status
    ended = [process for process in waited.processes if process.id not in waited.matches]
    codes = [status(process) for process in ended if not any or process.id in waited.done[:1]]
    return next((code for code in codes if code), 0)
