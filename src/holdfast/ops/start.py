"""start and foreground: run a command. The options of `holdfast run` are declared here."""

from __future__ import annotations

from holdfast.errors import BadValue
from holdfast.ops.declare import PROCESS_ID, Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from holdfast.ops.declare import Field
    from holdfast.ops.kinds import (
        Environment,
        Flag,
        Integer,
        Number,
        Object,
        ProcessRef,
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
QUEUE_NAME = BACKEND_NAME = "^[A-Za-z0-9._-]+$"
_LONGEST_PATTERN = 4096
#: The shortest interval between two progress notifications.
SHORTEST_INTERVAL = 1.0


def _check_id(value: str) -> None:
    from holdfast.model.process import is_id

    if not is_id(value):
        raise BadValue("id must be proc_ and 12 lowercase hex digits")


def _check_name(value: str) -> None:
    from holdfast.model.process import is_name

    if not is_name(value):
        raise BadValue("name must have 1 to 64 of A-Z a-z 0-9 . _ - and not begin like an id")


def check_queue(value: str) -> None:
    from holdfast.model.process import is_name

    if not is_name(value):
        raise BadValue("a queue has 1 to 64 of A-Z a-z 0-9 . _ - as its name")


def _check_argv(value: list[str]) -> None:
    if not value or not value[0]:
        raise BadValue("the command is empty")


def check_directory(value: str) -> None:
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
    """No pattern of a list is empty or too long."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: list[str]) -> None:
        for pattern in value:
            if not pattern:
                raise BadValue(f"{self.name} has an empty pattern, which would match everything")
            if len(pattern.encode(errors="surrogateescape")) > _LONGEST_PATTERN:
                raise BadValue(f"a pattern of {self.name} is longer than {_LONGEST_PATTERN} bytes")


class ApprovalOptions(Operation):
    """How approval is requested, where it is needed."""

    asker: Flag = field(False, help="The caller asks the approver itself: the error then holds the request.")
    approval_wait: Seconds | None = field(None, help="Seconds to wait for a decision, at most 300.")


class Start(ApprovalOptions):
    """Start a command. The reply comes when it runs."""

    id: Text = field(
        longest=64,
        pattern=PROCESS_ID,
        rule=_check_id,
        help="Chosen by the caller: a retry with the same id does not start a second process.",
    )
    command: Text | None = field(None, help="A command for the shell. Either this or argv.")
    argv: list[Text] | None = field(
        None, items=100_000, least_items=1, rule=_check_argv, help="A command and its arguments, run without a shell."
    )
    name: Text | None = field(
        None,
        longest=64,
        pattern="^[A-Za-z0-9._-]+$",
        rule=_check_name,
        flag="--name",
        metavar="NAME",
        help="A name that can be used instead of the id. Unique among running processes.",
    )
    session: SessionName | None = field(
        None,
        flag="--session",
        metavar="S",
        help="The session that owns the process. Default: $HOLDFAST_SESSION, else default.",
    )
    task: SessionName | None = field(None, flag="--task", metavar="T", help="A second key to group processes by.")
    parent_session: SessionName | None = field(
        None,
        flag="--parent-session",
        metavar="S",
        help="The parent of the session, which receives its processes when it ends.",
    )
    acts_for: SessionName | None = field(
        None,
        help="Its own connections to holdfast are bound to this session, in place of the one that owns it. For callers "
        "that are not bound themselves.",
    )
    backend: Text | None = field(
        None,
        longest=64,
        required_text=True,
        pattern=BACKEND_NAME,
        flag="--backend",
        metavar="NAME",
        help="Run it there: local, podman, docker, apptainer, ssh, or a backend of config.toml (holdfast backends). "
        "The environment is that of the place, with --env on top. Default: local.",
    )
    image: Text | None = field(
        None,
        longest=1024,
        required_text=True,
        flag="--image",
        metavar="IMG",
        help="With a backend of containers: the image. Processes of one task (else of one session) with the same image "
        "and options share a container.",
    )
    host: Text | None = field(
        None,
        longest=1024,
        required_text=True,
        flag="--host",
        metavar="DEST",
        help="With ssh: the host, as ssh takes it ([USER@]HOST, or a Host of ssh_config). Implies --backend ssh.",
    )
    cwd: Text | None = field(
        None,
        longest=4095,
        required_text=True,
        rule=check_directory,
        flag=("-w", "--cwd"),
        metavar="DIR",
        help="Run in DIR. Default: the current directory; with --backend, the default directory there.",
    )
    env: Environment = field({}, help="The environment of the caller. It is added to that of a login shell.")
    grant: Environment = field(
        {},
        flag=("-e", "--env"),
        metavar="K=V",
        help="Set variable K to V; K alone passes on its current value.",
    )
    clean: Flag = field(
        False,
        flag="--clean-env",
        help="Remove variables that look like secrets, by name or by value, from the environment. Those named with "
        "--env, or as pass_env in config.toml, stay. The names of removed variables are printed.",
    )
    umask: Integer = field(0o022, most=0o777, help="The umask of the command.")
    pty: Flag = field(False, flag=("-t", "--pty"), help="Allocate a pseudo-terminal.")
    cols: Integer | None = field(None, least=1, most=1000, help="Columns of the terminal. Default: 120.")
    rows: Integer | None = field(None, least=1, most=1000, help="Rows of the terminal. Default: 30.")
    stdin: Flag = field(
        False,
        flag=("-i", "--stdin"),
        help="Keep stdin open for holdfast send; in the foreground, pass on this stdin. Default: stdin is empty; in "
        "the foreground, a pipe or a file is passed on. The stdin of a terminal is always open.",
    )
    split: Flag = field(
        False,
        flag="--split",
        help="Keep stderr in a log of its own. Default: one log for both, in the order of writing.",
    )
    lifetime: Literal["session", "daemon", "detached"] = field(
        "detached",
        flag="--lifetime",
        help="Whether to end it with its session, when the daemon is stopped (not when it crashes), or never. "
        "Default: detached (never).",
    )
    on_boot: Flag = field(
        False,
        flag="--on-boot",
        help="Run it again after a boot, when the daemon starts: once, with the same id. See holdfast service.",
    )
    deadline: Seconds | None = field(
        None, above=0, flag="--deadline", metavar="S", help="The longest that it may run (90, 10m, 2h)."
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
        help="Ready when a line of output matches RE (RE2 syntax).",
    )
    ready_port: Integer | None = field(
        None,
        least=1,
        most=65535,
        flag="--ready-port",
        metavar="N",
        help="Ready when a process of its tree listens on TCP port N.",
    )
    ready_http: Text | None = field(
        None, longest=4096, flag="--ready-http", metavar="URL", help="Ready when a GET of URL returns 2xx or 3xx."
    )
    ready_uptime: Seconds | None = field(
        None, flag="--ready-uptime", metavar="S", help="Ready when it has run for S seconds."
    )
    ready_timeout: Seconds | None = field(
        None,
        above=0,
        flag="--ready-timeout",
        metavar="S",
        help="Report it as not ready after S seconds. The process goes on. Default: no limit.",
    )
    stall: Seconds | None = field(
        None,
        least=0.05,
        flag="--stall",
        metavar="S",
        help="Report it as stalled after S seconds without output and CPU use. The process goes on.",
    )
    notify: Literal["any", "failure", "success", "never"] | None = field(
        None,
        implies="any",
        flag="--notify",
        help="Notify the session of the end (holdfast inbox): of any end, of failures, of successes, or never. The "
        "session is not notified of an end that it asked for. Default: any; with --watch, never.",
    )
    watch: list[Text] = field(
        (),
        items=10 * MOST_PATTERNS,
        rule=_PatternsRule("watch"),
        flag="--watch",
        metavar="TEXT",
        help="Notify the session when a line of output contains TEXT. With --notify=any the watch is dropped: the "
        "session is notified of the end only.",
    )
    watch_regex: list[Text] = field(
        (),
        items=10 * MOST_PATTERNS,
        rule=_PatternsRule("watch_regex"),
        flag="--watch-regex",
        metavar="RE",
        help="Notify the session when a line of output matches RE (RE2 syntax).",
    )
    check_interval: Seconds | None = field(
        None,
        above=0,
        flag="--check-interval",
        metavar="S",
        help="Notify the session of new output every S seconds, at least 1.",
    )
    queue: Text | None = field(
        None,
        longest=64,
        pattern=QUEUE_NAME,
        rule=check_queue,
        flag="--queue",
        metavar="NAME",
        help="Start it when its turn in this queue has come: a queue runs one process at a time, or as many as "
        "holdfast queue NAME --limit N allows. Until then its status is waiting. Implies -d.",
    )
    after: list[Text] = field(
        (),
        items=100,
        flag="--after",
        metavar="ID",
        help="Start it when this process has ended. Implies -d.",
    )
    after_success: list[Text] = field(
        (),
        items=100,
        flag="--after-success",
        metavar="ID",
        help="Start it when this process has ended successfully. If that fails, this one ends with reason skipped. "
        "Implies -d.",
    )
    origin: Object | None = field(
        None,
        most=4096,
        flag="--origin",
        metavar="JSON",
        help="An object that every notification of this process carries, such as a reply address.",
    )
    restart: Literal["never", "on-failure", "always"] = field(
        "never",
        flag="--restart",
        help="Restart it when it exits: never, when it failed, or always. Not after holdfast kill or its deadline. "
        "Default: never.",
    )
    restart_limit: Integer = field(
        5,
        most=1_000_000,
        flag="--restart-limit",
        metavar="N",
        help="Give up after N failed restarts in a row; 0 for no limit. Default: 5.",
    )
    restart_delay: Seconds = field(
        1.0,
        above=0,
        flag="--restart-delay",
        metavar="S",
        help="Seconds before the first restart. They double with each further one, up to 60. Default: 1.",
    )
    success_codes: list[Integer] = field(
        (),
        item={"most": 255},
        least_items=1,
        rule=_check_codes,
        flag="--success-codes",
        metavar="N,N…",
        help="Exit codes that count as success. Default: 0.",
    )
    stop_cmd: Text | None = field(
        None,
        rule=_check_stop_cmd,
        flag="--stop-cmd",
        metavar="TEXT",
        help="To end it, first run TEXT with the shell, in its directory and environment and with its pid in "
        "HOLDFAST_PID. SIGTERM follows when TEXT has ended, or after the grace period.",
    )
    if_running: Literal["reuse", "replace", "error", "allow"] = field(
        "allow",
        flag="--if-running",
        help="If the session already runs this command in this directory: return that process, end it first, fail, "
        "or start another. Default: allow.",
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
        help="Limit the memory of its process tree (500M, 2G). Beyond it the tree is killed, with reason oom.",
    )
    cpus: Number | None = field(
        None,
        least=0.01,
        most=100_000,
        flag="--cpus",
        metavar="N",
        help="Limit the CPUs that its process tree may use (2, 0.5).",
    )
    pids: Integer | None = field(
        None,
        least=1,
        most=1 << 22,
        flag="--pids",
        metavar="N",
        help="Limit the number of processes and threads of its tree.",
    )
    nice: Integer | None = field(
        None,
        least=-20,
        most=19,
        launch=True,
        flag="--nice",
        metavar="N",
        help="Its nice value, -20 (highest priority) to 19. Below 0 needs privileges. Default: that of the daemon.",
    )
    sandbox: Flag = field(
        False,
        flag="--sandbox",
        help="Run it in a sandbox (bubblewrap): it can write to its directory (not to a home or system directory), to "
        "those of --writable and to a /tmp of its own, and only read everything else. It has no network and sees no "
        "process outside.",
    )
    writable: list[Text] = field(
        (),
        items=100,
        item={"longest": 4095},
        flag="--writable",
        metavar="DIR",
        help="With --sandbox: a directory that it can write to as well. A relative one is below its own directory.",
    )
    network: Literal["none", "host"] | None = field(
        None,
        flag="--network",
        help="With --sandbox: no network, or that of this machine. Default: none, so that nothing that it can read "
        "leaves the machine unnoticed.",
    )
    sudo: Flag = field(
        False,
        flag="--sudo",
        help="Let sudo in the command ask for its password in holdfast approvals --follow.",
    )
    gate: Flag = field(
        False,
        flag="--gate",
        help="Check the command first: a dangerous one needs approval (holdfast approvals).",
    )
    shell: Text | None = field(
        None,
        longest=4096,
        flag="--shell",
        metavar="PATH",
        help="The shell for -c. Default: as configured, else bash, else sh.",
    )
    labels: TextsByName = field(
        {}, most=64, longest=4096, longest_name=128, help="Key-value texts that are kept with the process."
    )
    attached: Flag = field(
        False, help="A terminal is about to attach, and will answer terminal queries of the command."
    )
    fingerprint: Text | None = field(
        None, longest=128, help="A hash of the request: the same id with another one is refused."
    )

    class Reply(Record):
        process: ProcessFields = field()
        notes: list[Text] = field(help="Messages for the user, such as options that were dropped.")

    traits = Traits(
        completes=True,
        scope=Scope.SPECIAL,
        time_limit=TIME_LIMIT,
        route="POST /processes",
        http_name="startProcess",
        names={"grant": "env"},
    )


class Foreground(Start):
    """Start a command, wait until it ends, needs input or the time is over, and read its output."""

    timeout: Seconds = field(help="Seconds to wait, from the start of the command.")
    within: Seconds | None = field(None, help="Seconds to wait, from the request. The shorter of the two counts.")
    characters: Integer = field(30_000, least=1, most=1_000_000, help="The most characters of output.")
    tokens: Integer = field(10_000, least=1, most=1_000_000, help="The most tokens of output.")
    notices: Integer = field(0, most=100, help="The most pending notifications to return.")

    class Reply(Record):
        process: ProcessFields = field()
        notes: list[Text] = field(help="As in `start`.")
        shown: Object = field(help="The output: text (secrets masked), start, end, total, omitted, is_folded.")
        notifications: list[NotificationFields] = field(help="Claimed for this client, which acknowledges them.")
        consumes: list[Text] = field((), help="As in `wait`.")

    traits = Traits(waits=True, scope=Scope.SPECIAL, names={"grant": "env"})


#: Exec declares the same fields.
_START: Any = Start.FIELDS


class Exec(ApprovalOptions):
    """Run another command in the directory and the environment of a process, which may have ended.

    The reply comes when it runs. Its options are its own: limits, restarts and watches are not taken over.
    """

    process: ProcessRef = field(help="An id, a name, or a unique prefix of either (of an id 4 hex digits or more).")
    id: Text = _START["id"]
    command: Text | None = _START["command"]
    argv: list[Text] | None = _START["argv"]
    name: Text | None = _START["name"]
    session: SessionName | None = _START["session"]
    grant: Environment = _START["grant"]
    pty: Flag = _START["pty"]
    cols: Integer | None = _START["cols"]
    rows: Integer | None = _START["rows"]
    stdin: Flag = _START["stdin"]
    gate: Flag = _START["gate"]
    shell: Text | None = _START["shell"]
    attached: Flag = _START["attached"]

    class Reply(Record):
        process: ProcessFields = field(help="The new process.")
        notes: list[Text] = field(help="As in `start`.")

    traits = Traits(
        completes=True,
        scope=Scope.SPECIAL,
        audited=True,
        time_limit=TIME_LIMIT,
        route="POST /processes/{process}/exec",
        http_name="execInProcess",
        names={"grant": "env"},
    )


class CommandLineOptions(Record):
    """Options of `holdfast run` that are not fields of the request."""

    detach: Flag = field(False, flag=("-d", "--detach"), help="Run in the background: print the id and return.")
    c: Text | None = field(None, flag="-c", metavar="TEXT", help="Run TEXT with the shell, instead of COMMAND.")
    wait_ready: Flag = field(
        False,
        flag="--wait-ready",
        help="With -d: return when it is ready, with the exit codes of holdfast wait --until ready.",
    )
    size: TerminalSize | None = field(
        None,
        flag="--size",
        metavar="COLSxROWS",
        help="The size of the terminal. Default: that of this terminal, else 120x30.",
    )
    detach_key: Text | None = field(
        None,
        flag="--detach-key",
        metavar="KEY",
        help="The key that detaches a foreground run on a terminal, and leaves the command running. Default: ctrl-].",
    )
    no_sandbox: Flag = field(
        False,
        flag="--no-sandbox",
        help="With --gate: run it outside the sandbox into which the policy would put it. That needs approval.",
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
