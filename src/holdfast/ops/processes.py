"""Operations on processes: list, inspect, wait, end, write to."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field
from holdfast.ops.kinds import LARGEST_NUMBER
from holdfast.ops.start import ApprovalOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import (
        Anything,
        Base64,
        Flag,
        Integer,
        Number,
        Object,
        ProcessRef,
        Seconds,
        SessionName,
        Size,
        Text,
    )
    from holdfast.ops.records import (
        AwaitedMatchFields,
        GlanceFields,
        KillResultFields,
        PortHolderFields,
        ProcessFields,
        ScreenFields,
        TopFields,
        TreeFields,
    )

#: The highest signal number of Linux.
_LAST_SIGNAL = 64
HISTORY = 60
_OFFSET = {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}
_OFFSETS = {"type": "object", "additionalProperties": _OFFSET}
_GRACE = "Seconds between SIGTERM and SIGKILL. Default: 10, or as configured."
_REF = "An id, a name, or a unique prefix of either (of an id 4 hex digits or more)."


class List(Operation):
    """List running processes, oldest first; with `all`, also ended ones that are still kept."""

    all: Flag = field(False, help="Also ended processes.")
    session: SessionName | None = field(None, help="Only processes of this session.")
    task: SessionName | None = field(None, help="Only processes of this task.")
    used: Flag = field(True, help="Also what they use: memory, CPU time, ports.")
    limit: Integer | None = field(None, least=1, help="The most processes on a page.")
    after: Text | None = field(
        None, longest=64, help="The `next` of the previous page. No process is repeated or left out between pages."
    )

    class Reply(Record):
        processes: list[ProcessFields] = field()
        next: Text | None = field(help="Where the next page begins; null on the last page.")

    traits = Traits(reads=True, scope=Scope.SESSION, route="GET /processes", http_name="listProcesses")


class Inspect(Operation):
    """The process object of one process."""

    process: ProcessRef = field(help=_REF)
    seen: Text | None = field(
        None, longest=100, help="The `seen` of an earlier reply: the process is sent only if it changed since."
    )
    tree: Flag = field(False, help="Also the process tree, as `tree`.")
    spec: Flag = field(False, help="Also the options that it was started with, as `spec`.")

    class Reply(Record):
        process: ProcessFields = field()
        seen: Text = field(help="A token for this state of the process.")
        tree: list[TreeFields] | None = field(None, help="Null unless it was requested and is known.")
        spec: Object | None = field(
            None,
            help="Null unless it was requested: `command` or `argv`, options of `start` that differ from the default, "
            "`env` (variables that were given and are not secret) and `omitted` (names of what is left out).",
        )

    traits = Traits(reads=True, scope=Scope.PROCESS, route="GET /processes/{process}", http_name="getProcess")


class Why(Operation):
    """How a process ended, or what a running one waits for, and what to try."""

    process: ProcessRef = field(help=_REF)

    class Reply(Record):
        process: ProcessFields = field()
        summary: Text = field(help="How it ended, or that it runs, in one sentence.")
        details: list[Text] = field(help="What else is known: limits, restarts, ports, problems.")
        lines: list[Text] = field(help="Lines of its output that look like errors, else the last ones. Secrets masked.")
        are_errors: Flag = field(help="Whether `lines` look like errors.")
        port: PortHolderFields | None = field(help="Of a port that it could not listen on.")
        next: list[Text] = field(help="What to try, the best first.")

    traits = Traits(
        reads=True,
        scope=Scope.PROCESS,
        route="GET /processes/{process}/why",
        http_name="explainProcess",
        positional=("process",),
    )


class Counts(Operation):
    """How many processes run, and how many of them need attention."""

    session: SessionName | None = field(None, help="Only processes of this session.")
    task: SessionName | None = field(None, help="Only processes of this task.")

    class Reply(Record):
        running: Integer = field()
        waiting: Integer = field(help="Those that wait to be started.")
        asking: Integer = field(help="Running ones that wait for input.")
        stalled: Integer = field(help="Running ones that are stalled.")
        failed: Integer = field(help="Those that failed in the last 30 minutes.")

    traits = Traits(reads=True, scope=Scope.SESSION, route="GET /counts", http_name="countProcesses")


class Top(Operation):
    """CPU, memory and ports of running processes, the largest first."""

    session: SessionName | None = field(None, help="Only processes of this session.")
    task: SessionName | None = field(None, help="Only processes of this task.")
    sort: Literal["cpu", "memory", "started"] = field("cpu", help="What to sort by.")
    limit: Integer = field(0, most=1 << 20, help="The most rows; 0 for all.")
    history: Integer = field(HISTORY, most=HISTORY, help="The number of samples of each process, newest ones.")

    class Reply(Record):
        processes: list[TopFields] = field()
        total: Integer = field(help="Running processes.")
        cpu_percent: Number = field(help="Of all of them; 100 is one core.")
        rss_bytes: Size = field(help="Memory of all of them.")

    traits = Traits(reads=True, scope=Scope.SESSION, route="GET /top", http_name="getTop")


class Glance(Operation):
    """Processes as a list on a screen shows them: with what they use, and the last line of their output."""

    processes: list[Text] = field(items=500, help="Their ids.")
    history: Integer = field(0, most=HISTORY, help="The number of samples of each process, newest ones.")

    class Reply(Record):
        processes: list[GlanceFields] = field(help="In the order of the request.")
        unknown: list[Text] = field(help="Ids that are not known, or not any more.")

    traits = Traits(reads=True, route="POST /glance", http_name="glanceAtProcesses", positional=("processes",))


class ProcessEvents(Operation):
    """Events of one process that are kept, oldest first: its own, its notifications and its approvals."""

    process: ProcessRef = field(help=_REF)
    limit: Integer = field(1000, least=1, most=10_000, help="At most this many, the newest ones.")
    before: Integer | None = field(None, least=1, help="Only events before this number.")

    class Reply(Record):
        events: list[Object] = field()
        more: Flag = field(help="Whether there are older ones.")

    traits = Traits(
        reads=True,
        scope=Scope.PROCESS,
        route="GET /processes/{process}/events",
        http_name="getProcessEvents",
        positional=("process",),
    )


class Wait(Operation):
    """Wait until processes end, write output, write a matching line, or are ready. A timeout is not an error."""

    processes: list[ProcessRef] = field((), help="Ids, names, or unique prefixes of them.")
    mode: Literal["all", "any"] = field("all", help="Wait for all of them, or for any one.")
    timeout: Seconds | None = field(None, help="Seconds to wait. Default: no limit, or as configured.")
    until: Literal["exit", "output", "ready", "match"] = field("exit", help="What to wait for.")
    after: Anything = field(
        None,
        schema={"oneOf": [_OFFSET, {"type": "object", "additionalProperties": _OFFSETS}]},
        help="With until=output or match: look at output after this byte. Default: new output only. With match also "
        'an offset for each stream: {"proc_…": {"out": 42}}.',
    )
    match: Text | None = field(None, help="With until=match: an RE2 pattern for one line of output.")
    ignore_case: Flag = field(False, help="With until=match: ignore upper and lower case.")
    or_input: Seconds | None = field(
        None, help="With until=exit: also return when one of them has needed input since after this unix time."
    )
    consume: Flag = field(True, help="If the owner session receives the end here, it is not notified of it again.")

    class Reply(Record):
        processes: list[ProcessFields] = field()
        done: list[Text] = field(help="Ids of those that are done, in that order.")
        timed_out: Flag = field(help="Whether the time was over first.")
        waited: Seconds = field(help="Seconds that this took.")
        clamped_to: Seconds | None = field(
            help="The limit in seconds that the daemon used instead of the timeout; null if none."
        )
        matches: dict[str, AwaitedMatchFields] = field(
            {}, help="With until=match: the first matching line of each process."
        )
        consumes: list[Text] = field(
            (), help="Ids of notifications that this reply replaces. The client confirms with a `got` frame."
        )

    traits = Traits(
        reads=True,
        repeatable=False,
        waits=True,
        scope=Scope.PROCESSES,
        route="POST /wait",
        http_name="waitForProcesses",
    )


class Kill(Operation):
    """End processes with everything they started, or send them a signal."""

    processes: list[ProcessRef] | None = field(None, help="Ids, names, or unique prefixes of them.")
    session: SessionName | None = field(None, help="All running processes of this session.")
    task: SessionName | None = field(None, help="All running processes of this task.")
    all: Flag = field(False, help="All running processes, of every session.")
    signal: Integer | None = field(
        None, least=1, most=_LAST_SIGNAL, help="Only send this signal: a number, or over HTTP a name such as TERM."
    )
    grace: Seconds | None = field(None, help=_GRACE)

    class Reply(Record):
        results: list[KillResultFields] = field()

    traits = Traits(
        completes=True,
        waits=True,
        scope=Scope.PROCESSES,
        audited=True,
        route="POST /kill",
        http_name="killProcesses",
    )


class Send(ApprovalOptions):
    """Write to the input of a process."""

    process: ProcessRef = field(help=_REF)
    data: Base64 = field("", longest=16 << 20, help="The bytes to write.")
    enter: Flag = field(False, help="Press Enter after them: a newline on a pipe, a carriage return on a terminal.")
    eof: Flag = field(False, help="Close the input after them.")
    at: Size | None = field(
        None, help="The input offset of the first byte, from the last `accepted`: a retry writes nothing twice."
    )
    secret: Flag = field(
        False, help="Write only while the terminal does not echo. Denied for callers that are bound to a session."
    )
    even_if_echoed: Flag = field(False, help="With `secret`: write also while the terminal echoes.")

    class Reply(Record):
        written: Size = field(help="Bytes that were written.")
        accepted: Size | None = field(help="The input offset after them.")
        status: Literal["sent", "already_exited"] = field()
        process: ProcessFields = field()

    traits = Traits(
        repeatable=False,
        waits=True,
        scope=Scope.PROCESS,
        audited=True,
        frequent=True,
        route="POST /processes/{process}/stdin",
        http_name="writeInput",
    )


class Resize(Operation):
    """Change the size of the terminal of a process."""

    process: ProcessRef = field(help=_REF)
    cols: Integer = field(least=1, most=1000, help="Columns.")
    rows: Integer = field(least=1, most=1000, help="Rows.")

    traits = Traits(
        scope=Scope.PROCESS,
        audited=True,
        frequent=True,
        route="POST /processes/{process}/resize",
        http_name="resizeTerminal",
        positional=("process", "cols", "rows"),
    )


class Restart(ApprovalOptions):
    """Run a process again with the same command, options and id; a running one is ended first."""

    process: ProcessRef = field(help=_REF)
    run: Integer | None = field(
        None, least=1, most=1 << 40, help="The number of the new run: a retry with the same number does nothing."
    )
    grace: Seconds | None = field(None, help=_GRACE)

    class Reply(Record):
        process: ProcessFields = field()

    traits = Traits(
        completes=True,
        waits=True,
        scope=Scope.PROCESS,
        audited=True,
        route="POST /processes/{process}/restart",
        http_name="restartProcess",
    )


class ShowScreen(Operation):
    """The rendered screen of the terminal of a process."""

    op = "screen"

    process: ProcessRef = field(help=_REF)
    ansi: Flag = field(False, help="With colours and styles, as escape sequences.")

    class Reply(Record):
        screen: ScreenFields = field()
        process: ProcessFields = field()

    traits = Traits(
        reads=True,
        scope=Scope.PROCESS,
        route="GET /processes/{process}/screen",
        http_name="getScreen",
        returns="screen",
        positional=("process",),
    )


class Attached(Operation):
    """Report that a terminal shows the output: until this request ends, that terminal answers the queries in it."""

    process: ProcessRef = field(help=_REF)
    from_: Size | None = field(None, help="The first byte of output that it shows.")

    traits = Traits(
        waits=True, scope=Scope.PROCESS, route="POST /processes/{process}/attached", http_name="showOnTerminal"
    )


class Remove(Operation):
    """Delete ended processes with their output: all of them or none."""

    processes: list[ProcessRef] = field((), help="Ids, names, or unique prefixes of them.")
    all: Flag = field(
        False, help="All ended processes, of every session. Those whose output is still written to are kept."
    )

    class Reply(Record):
        removed: list[Text] = field(help="Ids of the processes.")

    traits = Traits(
        completes=True,
        scope=Scope.PROCESSES,
        audited=True,
        time_limit=600.0,
        route="POST /remove",
        http_name="removeProcesses",
        returns="removed",
        star="processes",
    )


class Transfer(Operation):
    """Give a process, and its pending notifications, to another session."""

    process: ProcessRef = field(help=_REF)
    to: SessionName | None = field(None, help="The new owner session. Required.")

    class Reply(Record):
        process: ProcessFields = field()
        notifications: list[Text] = field(help="Ids of the notifications that move with it.")

    traits = Traits(
        completes=True,
        scope=Scope.PROCESS,
        audited=True,
        route="POST /processes/{process}/transfer",
        http_name="transferProcess",
        returns="process",
        positional=("process", "to"),
        needs=("to",),
    )
