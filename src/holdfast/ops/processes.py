"""Operations on processes that are held: look at them, wait for them, end them, write to them."""

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
        ProcessRef,
        Seconds,
        SessionName,
        Size,
        Text,
    )
    from holdfast.ops.records import (
        AwaitedMatchFields,
        KillResultFields,
        ProcessFields,
        ScreenFields,
        TopFields,
        TreeFields,
    )

#: The number of signals that Linux knows, and the first one.
_LAST_SIGNAL = 64
HISTORY = 60
_OFFSET = {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}
_OFFSETS = {"type": "object", "additionalProperties": _OFFSET}
_GRACE = "Seconds between SIGTERM and SIGKILL."
_REF = "An id, a unique prefix of one (4 hex digits or more), or a name."


class List(Operation):
    """The running processes, oldest first; with `all`, also those that ended and are remembered."""

    all: Flag = field(False, help="Also those that have ended.")
    session: SessionName | None = field(None, help="Only those of this session.")
    task: SessionName | None = field(None, help="Only those of this task.")
    used: Flag = field(True, help="Also what they use: memory, processor time, ports.")
    limit: Integer | None = field(None, least=1, help="At most so many on a page.")
    after: Text | None = field(
        None, longest=64, help="The `next` of the page before. Nothing is shown twice or left out between pages."
    )

    class Reply(Record):
        processes: list[ProcessFields] = field()
        next: Text | None = field(help="Where the next page begins; null on the last.")

    traits = Traits(scope=Scope.SESSION, route="GET /processes", http_name="listProcesses")


class Inspect(Operation):
    """All that is known of a process."""

    process: ProcessRef = field(help=_REF)
    seen: Text | None = field(
        None, longest=100, help="The `seen` of the reply before: what has not changed is not sent again."
    )
    tree: Flag = field(False, help="Also every process of its tree, as `tree`.")

    class Reply(Record):
        process: ProcessFields = field()
        seen: Text = field(help="Stands for this state of the process.")
        tree: list[TreeFields] | None = field(None, help="Null where it was not asked for, or is not known.")

    traits = Traits(scope=Scope.PROCESS, route="GET /processes/{process}", http_name="getProcess")


class Top(Operation):
    """What the running processes use, the largest first."""

    session: SessionName | None = field(None, help="Those of this session.")
    task: SessionName | None = field(None, help="Those of this task.")
    sort: Literal["cpu", "memory", "started"] = field("cpu", help="The order.")
    limit: Integer = field(0, most=1 << 20, help="So many rows; 0 for all.")
    history: Integer = field(HISTORY, most=HISTORY, help="So many of the last samples of each.")

    class Reply(Record):
        processes: list[TopFields] = field()
        total: Integer = field(help="How many run.")
        cpu_percent: Number = field(help="Of all of them.")
        rss_bytes: Size = field(help="Of all of them.")

    traits = Traits(scope=Scope.SESSION, route="GET /top", http_name="getTop")


class Wait(Operation):
    """Wait until processes end, write something, write what matches, or are ready. A wait that runs out is no error."""

    processes: list[ProcessRef] = field((), help="Ids, unique prefixes of ids, or names.")
    mode: Literal["all", "any"] = field("all", help="Until all of them are done, or any.")
    timeout: Seconds | None = field(None, help="Seconds; no limit unless given, or the daemon's.")
    until: Literal["exit", "output", "ready", "match"] = field("exit")
    after: Anything = field(
        None,
        schema={"oneOf": [_OFFSET, {"type": "object", "additionalProperties": _OFFSETS}]},
        help="With until=output or match: in what follows so many bytes of output, not from now on. With match also "
        '{"proc_…": {"out": 42}}, an offset for each stream.',
    )
    match: Text | None = field(None, help="With until=match: an RE2 pattern for a line of output.")
    ignore_case: Flag = field(False)
    or_input: Seconds | None = field(
        None, help="With until=exit: also until one of them needs input, since later than this time."
    )
    consume: Flag = field(True, help="False: the end stays in the owner's inbox.")

    class Reply(Record):
        processes: list[ProcessFields] = field()
        done: list[Text] = field(help="Ids of those that are done, in the order in which they were.")
        timed_out: Flag = field()
        waited: Seconds = field()
        clamped_to: Seconds | None = field(help="The daemon's limit, where it was less than the timeout.")
        matches: dict[str, AwaitedMatchFields] = field(
            {}, help="With until=match: the first line of each that matched."
        )
        consumes: list[Text] = field(
            (), help="Notifications that this reply stands for. The client confirms it with `got`."
        )

    traits = Traits(
        repeatable=False, waits=True, scope=Scope.PROCESSES, route="POST /wait", http_name="waitForProcesses"
    )


class Kill(Operation):
    """End processes with everything they started, or send them a signal."""

    processes: list[ProcessRef] | None = field(None, help="Ids, unique prefixes of ids, or names.")
    session: SessionName | None = field(None, help="All that run for this session.")
    task: SessionName | None = field(None, help="All that run for this task.")
    all: Flag = field(False, help="All that run.")
    signal: Integer | None = field(
        None, least=1, most=_LAST_SIGNAL, help="Send just this signal: a number, or over HTTP a name such as TERM."
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
    data: Base64 = field("", longest=16 << 20, help="The bytes.")
    enter: Flag = field(False, help="Press Enter after them.")
    eof: Flag = field(False, help="Close the input after them.")
    at: Size | None = field(
        None, help="Where they begin, as `accepted` said before: what is there already is not written again."
    )
    secret: Flag = field(
        False, help="Only where the terminal does not echo what is typed; not for callers bound to a session."
    )
    even_if_echoed: Flag = field(False, help="A secret, also where it is echoed.")

    class Reply(Record):
        written: Size = field()
        accepted: Size | None = field(help="How far the input reaches now.")
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
    """Change the size of a process's terminal."""

    process: ProcessRef = field(help=_REF)
    cols: Integer = field(least=1, most=1000)
    rows: Integer = field(least=1, most=1000)

    traits = Traits(
        scope=Scope.PROCESS,
        audited=True,
        frequent=True,
        route="POST /processes/{process}/resize",
        http_name="resizeTerminal",
        positional=("process", "cols", "rows"),
    )


class Restart(ApprovalOptions):
    """Run a process again, with the same spec and id; one that runs is ended first."""

    process: ProcessRef = field(help=_REF)
    run: Integer | None = field(
        None, least=1, most=1 << 40, help="The number of the run to come: asking twice restarts once."
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
    """What a process's terminal shows now."""

    op = "screen"

    process: ProcessRef = field(help=_REF)
    ansi: Flag = field(False, help="With colours and other attributes, as escape sequences.")

    class Reply(Record):
        screen: ScreenFields = field()
        process: ProcessFields = field()

    traits = Traits(
        scope=Scope.PROCESS,
        route="GET /processes/{process}/screen",
        http_name="getScreen",
        returns="screen",
        positional=("process",),
    )


class Attached(Operation):
    """Say that a terminal shows what the process writes: until this ends, that terminal answers its queries."""

    process: ProcessRef = field(help=_REF)
    from_: Size | None = field(None, help="From which byte of output on.")

    traits = Traits(
        waits=True, scope=Scope.PROCESS, route="POST /processes/{process}/attached", http_name="showOnTerminal"
    )


class Remove(Operation):
    """Forget ended processes with their output: all of them or none."""

    processes: list[ProcessRef] = field((), help="Ids, unique prefixes of ids, or names.")

    class Reply(Record):
        removed: list[Text] = field(help="Ids.")

    traits = Traits(
        completes=True,
        scope=Scope.PROCESSES,
        audited=True,
        route="POST /remove",
        http_name="removeProcesses",
        returns="removed",
        star="processes",
    )


class Transfer(Operation):
    """Give a process, and its pending notifications, to another session."""

    process: ProcessRef = field(help=_REF)
    to: SessionName | None = field(None, help="The session.")

    class Reply(Record):
        process: ProcessFields = field()
        notifications: list[Text] = field(help="Ids of notifications that go with it.")

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
