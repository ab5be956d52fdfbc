"""start: run a command and hold it. The options of `holdfast run` are declared here."""

from __future__ import annotations

from holdfast.errors import BadValue
from holdfast.ops.declare import PROCESS_ID, Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.declare import Field
    from holdfast.ops.kinds import (
        Environment,
        Flag,
        Integer,
        Number,
        Object,
        Seconds,
        SessionName,
        Size,
        TerminalSize,
        Text,
        TextsByName,
    )
    from holdfast.ops.records import NotificationFields, ProcessFields

#: A start may have to wait for a login shell, or for another process to end.
TIME_LIMIT = 300.0
MOST_PATTERNS = 100
_LONGEST_PATTERN = 4096
#: The shortest interval between two progress notifications.
SHORTEST_INTERVAL = 1.0


def _check_id(value: str) -> None:
    from holdfast.model.ids import is_id

    if not is_id(value):
        raise BadValue("id must be proc_ and 12 lowercase hex digits")


def _check_name(value: str) -> None:
    from holdfast.model.ids import is_name

    if not is_name(value):
        raise BadValue("name must have 1 to 64 of A-Z a-z 0-9 . _ - and not begin like an id")


def _check_argv(value: list[str]) -> None:
    if not value or not value[0]:
        raise BadValue("the command is empty")


def _check_directory(value: str) -> None:
    if not value.startswith("/"):
        raise BadValue(f"cwd must be an absolute path, not {value[:60]!r}")


def _check_stop_cmd(value: str) -> None:
    if not value.strip():
        raise BadValue("stop_cmd is empty")


def _check_ready_log(value: str) -> None:
    if not value:
        raise BadValue("ready_log is empty")


def _check_codes(value: list[int]) -> None:
    if not value:
        raise BadValue("success_codes must be a list of exit codes, not []")


class _PatternsRule:
    """Of a list of patterns: none is empty, none too long."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: list[str]) -> None:
        for pattern in value:
            if not pattern:
                raise BadValue(f"{self.name} has an empty pattern, which would match everything")
            if len(pattern.encode(errors="surrogateescape")) > _LONGEST_PATTERN:
                raise BadValue(f"a pattern of {self.name} is longer than {_LONGEST_PATTERN} bytes")


class ApprovalOptions(Operation):
    """How an approver is asked, where that is needed."""

    asker: Flag = field(False, help="The caller asks the approver itself, and is answered what to ask.")
    approval_wait: Seconds | None = field(None, help="How long to wait for a decision, 300 seconds at most.")


class Start(ApprovalOptions):
    """Start a command. Answers when it runs."""

    id: Text = field(
        longest=64, pattern=PROCESS_ID, rule=_check_id, help="Chosen by the caller: asking twice starts once."
    )
    command: Text | None = field(None, help="A command text for the shell. Either this or argv.")
    argv: list[Text] | None = field(
        None, items=100_000, least_items=1, rule=_check_argv, help="A command without a shell."
    )
    name: Text | None = field(
        None,
        longest=4096,
        pattern="^[A-Za-z0-9._-]+$",
        rule=_check_name,
        flag="--name",
        metavar="NAME",
        help="A name that stands for the id. One running process can have it.",
    )
    session: SessionName | None = field(
        None,
        flag="--session",
        metavar="S",
        help="The session that owns it. Default: $HOLDFAST_SESSION, else default.",
    )
    task: SessionName | None = field(None, flag="--task", metavar="T", help="A second key to group processes by.")
    parent_session: SessionName | None = field(
        None, flag="--parent-session", metavar="S", help="The session that started its session."
    )
    cwd: Text = field(
        longest=4095,
        required_text=True,
        rule=_check_directory,
        flag="--cwd",
        metavar="DIR",
        help="Run in DIR. Default: the current directory.",
    )
    env: Environment = field({}, help="The environment of the caller, over that of a login shell.")
    grant: Environment = field(
        {},
        flag="--env",
        metavar="K=V",
        help="Set variable K to V; K alone passes on the value it has here.",
    )
    clean: Flag = field(
        False,
        flag="--clean-env",
        help="Leave secrets out of its environment, by name and by look; what is named with --env, or as pass_env "
        "in config.toml, stays. The names of what was left out are printed.",
    )
    umask: Integer = field(0o022, most=0o777, help="The umask of the command.")
    pty: Flag = field(False, flag=("-t", "--pty"), help="Give it a terminal of its own.")
    cols: Integer | None = field(None, least=1, most=1000, help="Columns of its terminal.")
    rows: Integer | None = field(None, least=1, most=1000, help="Rows of its terminal.")
    stdin: Flag = field(
        False,
        flag="--stdin",
        help="Keep its input open for send; in the foreground, pass on what comes from stdin. Without it, the command "
        "reads end of file at once. A terminal is always open.",
    )
    split: Flag = field(
        False,
        flag="--split",
        help="Keep stderr apart from stdout. By default they are one log, in true order.",
    )
    lifetime: Literal["session", "daemon", "detached"] = field(
        "detached",
        flag="--lifetime",
        help="When it ends at the latest: with its session, when the daemon is stopped on purpose, or neither. "
        "A crash ends none of them. Default: detached.",
    )
    deadline: Seconds | None = field(
        None, above=0, flag="--deadline", metavar="S", help="A limit on how long it may run (90, 10m, 2h)."
    )
    deadline_action: Literal["kill", "notify"] = field(
        "kill", flag="--deadline-action", help="What happens at the deadline. Default: kill."
    )
    ready_log: Text | None = field(
        None,
        longest=_LONGEST_PATTERN,
        rule=_check_ready_log,
        flag="--ready-log",
        metavar="RE",
        help="Ready when a line of its output matches RE (RE2 syntax).",
    )
    ready_port: Integer | None = field(
        None,
        least=1,
        most=65535,
        flag="--ready-port",
        metavar="N",
        help="Ready when it listens on TCP port N itself.",
    )
    ready_http: Text | None = field(
        None, longest=4096, flag="--ready-http", metavar="URL", help="Ready when URL answers with 2xx or 3xx."
    )
    ready_uptime: Seconds | None = field(
        None, flag="--ready-uptime", metavar="S", help="Ready when it has been up for S seconds."
    )
    ready_timeout: Seconds | None = field(
        None,
        above=0,
        flag="--ready-timeout",
        metavar="S",
        help="Not ready after S seconds means never; the process goes on all the same. Default: no limit.",
    )
    stall: Seconds | None = field(
        None,
        least=0.05,
        flag="--stall",
        metavar="S",
        help="Mark it as stalled when it has neither written nor used the processor for S seconds. Ends nothing.",
    )
    notify: Literal["any", "failure", "success", "never"] | None = field(
        None,
        implies="any",
        flag="--notify",
        help="Which ends its session is notified of (holdfast inbox). An end that the session asked for is not "
        "notified. Default: any; with a watch, none.",
    )
    watch: list[Text] = field(
        (),
        items=10 * MOST_PATTERNS,
        rule=_PatternsRule("watch"),
        flag="--watch",
        metavar="TEXT",
        help="Notify its session when a line of its output contains TEXT. With --notify=any the watch is dropped: "
        "the session is notified of the end instead.",
    )
    watch_regex: list[Text] = field(
        (),
        items=10 * MOST_PATTERNS,
        rule=_PatternsRule("watch_regex"),
        flag="--watch-regex",
        metavar="RE",
        help="The same for a line that matches RE (RE2 syntax).",
    )
    check_interval: Seconds | None = field(
        None,
        above=0,
        flag="--check-interval",
        metavar="S",
        help="Notify its session every S seconds of what it wrote since, if it did. At least 1.",
    )
    origin: Object | None = field(
        None,
        most=4096,
        flag="--origin",
        metavar="JSON",
        help="An object that comes back with every notification of it, such as the address to answer to.",
    )
    restart: Literal["never", "on-failure", "always"] = field(
        "never",
        flag="--restart",
        help="Run it again when it ends by itself: never, when it failed, or always. What was killed, or ended at "
        "its deadline, stays ended. Default: never.",
    )
    restart_limit: Integer = field(
        5,
        most=1_000_000,
        flag="--restart-limit",
        metavar="N",
        help="Give up after N restarts in a row, 0 for never. A run that goes well begins a new row. Default: 5.",
    )
    restart_delay: Seconds = field(
        1.0,
        above=0,
        flag="--restart-delay",
        metavar="S",
        help="The pause before the first restart; it doubles with each further one, up to a minute. Default: 1.",
    )
    success_codes: list[Integer] = field(
        (),
        item={"most": 255},
        least_items=1,
        rule=_check_codes,
        flag="--success-codes",
        metavar="N,N…",
        help="Exit codes that are no failure. Default: 0.",
    )
    stop_cmd: Text | None = field(
        None,
        rule=_check_stop_cmd,
        flag="--stop-cmd",
        metavar="TEXT",
        help="Run TEXT by the shell before the process is signalled, in its directory and environment and with its "
        "pid in HOLDFAST_PID, for as long as the grace period at most.",
    )
    if_running: Literal["reuse", "replace", "error", "allow"] = field(
        "allow",
        flag="--if-running",
        help="When the session already runs this command in this directory: use that one, end it first, fail, or "
        "start another. Default: allow, and say so.",
    )
    log_cap: Size | None = field(
        None,
        least=64 << 10,
        most=1 << 50,
        flag="--log-cap",
        metavar="SIZE",
        help="Keep the last SIZE bytes of output (10M, 2G). Default: 256M, or as configured.",
    )
    memory: Size | None = field(
        None,
        least=1 << 20,
        most=1 << 50,
        flag="--memory",
        metavar="SIZE",
        help="A limit on its memory (500M, 2G), with everything that it starts: past it, all of it ends, and the "
        "reason is oom.",
    )
    cpus: Number | None = field(
        None,
        least=0.01,
        most=100_000,
        flag="--cpus",
        metavar="N",
        help="A limit on the processors that it may use (2, 0.5).",
    )
    pids: Integer | None = field(
        None,
        least=1,
        most=1 << 22,
        flag="--pids",
        metavar="N",
        help="A limit on how many processes and threads it may be.",
    )
    nice: Integer | None = field(
        None,
        least=-20,
        most=19,
        launch=True,
        flag="--nice",
        metavar="N",
        help="Its scheduling priority, from -20 (first) to 19 (last). Below 0 needs privileges. Default: the daemon's.",
    )
    sudo: Flag = field(
        False,
        flag="--sudo",
        help="Have sudo in it ask for a password by holdfast approvals --follow, without a terminal.",
    )
    gate: Flag = field(
        False,
        flag="--gate",
        help="Judge the command first: a dangerous one needs approval (holdfast approvals).",
    )
    shell: Text | None = field(
        None,
        longest=4096,
        flag="--shell",
        metavar="PATH",
        help="The shell for -c. Default: as configured, else bash, else sh.",
    )
    labels: TextsByName = field(
        {}, most=64, longest=4096, longest_name=128, help="Texts of the caller's own, kept with the process."
    )
    attached: Flag = field(False, help="A terminal is about to attach, and answers what the command asks of it.")
    fingerprint: Text | None = field(None, longest=128, help="Of the request that an idempotency key stands for.")

    class Reply(Record):
        process: ProcessFields = field()
        notes: list[Text] = field(help="What differs from the request, or is worth knowing.")

    traits = Traits(
        completes=True,
        scope=Scope.SPECIAL,
        time_limit=TIME_LIMIT,
        route="POST /processes",
        http_name="startProcess",
    )


class Foreground(Start):
    """Start a command, wait until it ends, asks for input or the time is over, and read its output."""

    timeout: Seconds = field(help="How long to wait, in seconds from the start of the command.")
    within: Seconds | None = field(None, help="How long to wait, in seconds from the request.")
    characters: Integer = field(30_000, least=1, most=1_000_000, help="At most so many characters of output.")
    tokens: Integer = field(10_000, least=1, most=1_000_000, help="At most so many tokens of output.")
    notices: Integer = field(0, most=100, help="At most so many pending notifications come with the reply.")

    class Reply(Record):
        process: ProcessFields = field()
        notes: list[Text] = field()
        shown: Object = field(help="text (secrets masked), start, end, total, omitted, is_folded.")
        notifications: list[NotificationFields] = field(help="Taken for this client, which acknowledges them.")
        consumes: list[Text] = field((), help="As in wait.")

    traits = Traits(waits=True, scope=Scope.SPECIAL)


class CommandLineOptions(Record):
    """Options of `holdfast run` that are no fields of the request."""

    detach: Flag = field(False, flag=("-d", "--detach"), help="Do not wait: print the id and return.")
    c: Text | None = field(None, flag="-c", metavar="TEXT", help="Run TEXT by the shell, instead of a COMMAND.")
    wait_ready: Flag = field(
        False,
        flag="--wait-ready",
        help="With -d: return when it is ready, with the exit codes of holdfast wait --until ready.",
    )
    size: TerminalSize | None = field(
        None,
        flag="--size",
        metavar="COLSxROWS",
        help="The size of the terminal. Default: that of this one, else 120x30.",
    )
    detach_key: Text | None = field(
        None,
        flag="--detach-key",
        metavar="KEY",
        help="With -t: the key that leaves the command running. Default: ctrl-].",
    )
    json: Flag = field(False, flag="--json", help="Print JSON on stdout, for programs. An error is printed there, too.")
    help: Flag = field(False, flag=("-h", "--help"), help="Show this text and exit.")


def run_options() -> tuple[Field, ...]:
    """Every option of `holdfast run`, in the order of its help."""
    special = CommandLineOptions.FIELDS
    first = (one for name, one in special.items() if name not in ("json", "help"))
    return (*first, *(one for one in Start.FIELDS.values() if one.flags), special["json"], special["help"])


def run_flags() -> dict[str, bool]:
    """The flags of `holdfast run`, and whether the word after each is its value."""
    return {flag: one.annotation != "Flag" and one.implies is None for one in run_options() for flag in one.flags}
