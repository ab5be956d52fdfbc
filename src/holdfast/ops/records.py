"""Records that replies are made of: the process object, the notification object and others."""

from __future__ import annotations

from holdfast.ops.declare import PROCESS_ID, Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import Flag, Integer, Number, Object, Seconds, Size, Text, Time


class ProcessFields(Record):
    """The process object. Times are unix seconds; unknown values are null."""

    __slots__ = ()

    id: Text = field(pattern=PROCESS_ID)
    name: Text | None = field(help="Can be used instead of the id. Unique among running processes.")
    command: Text = field(help="The command text, or the argument list quoted for a shell.")
    argv: list[Text] = field(help="The program and its arguments, as executed.")
    cwd: Text = field()
    session: Text = field(help="The owner session, which gets its notifications.")
    task: Text | None = field(help="A second key to group processes by.")
    backend: Text = field(help="Where it runs: `local`, or the name of another backend.")
    pid: Integer | None = field(help="The pid of the command itself; kept after its end.")
    status: Literal["running", "ended", "waiting", "restarting", "unreachable"] = field(
        help="`waiting`: for its turn in a queue, or for other processes. `restarting`: between two runs. "
        "`unreachable`: the place where it runs does not answer."
    )
    reason: Text | None = field(
        help="Why it ended: exited, signaled, killed, deadline, oom, lost, failed_start or skipped; null until then."
    )
    exit_code: Integer | None = field(help="As the kernel reports it; null if it was ended by a signal or is unknown.")
    signal: Integer | None = field(help="The number of the signal that ended it.")
    started_at: Time | None = field()
    ended_at: Time | None = field(help="When it ended; of one that is lost, when that was found.")
    ready: Flag | None = field(help="Whether it is ready, by its `ready_…` option; null without such an option.")
    output_bytes: Size = field(help="Bytes written in all.")
    dropped_bytes: Size = field(help="How many of these are no longer kept.")
    log_cap: Size = field(help="The most bytes of output that are kept.")
    lifetime: Text = field(help="session, daemon or detached.")
    notify: Text | None = field(help="Which ends its session is notified of.")
    watch: list[Text] = field(help="The texts and patterns of its watches.")
    pty: Flag = field(help="Whether it has a terminal.")
    stdin_open: Flag = field(help="Whether `send` can write to it.")
    deadline_at: Time | None = field()
    leftover_pids: list[Integer] = field(help="Descendants that outlived the command.")
    restarts: Integer | None = field(help="The number of restarts.")
    ports: list[Integer] | None = field(help="TCP ports that its tree listens on.")
    cpu_seconds: Number | None = field(help="CPU time of its tree.")
    rss_bytes: Size | None = field(help="Memory of its tree.")
    labels: dict[str, Text] = field(help="Texts that the caller attached to it.")
    killed_by: Text | None = field(help="The session that ended it; `dashboard` for a page of the dashboard.")
    forced: Flag | None = field(help="Whether SIGKILL was needed; null if it ended by itself.")
    exit_offset: Size | None = field(help="The output offset at the exit; its descendants wrote the rest.")
    stale: Flag = field(help="Whether it has run for longer than the configured age.")
    trouble: Text | None = field(help="A problem in running it, such as a full disk.")
    ready_at: Time | None = field(help="When it became ready.")
    ready_trouble: Text | None = field(help="Why it is not ready, if known.")
    stalled: Flag = field(help="Whether it had no output and no CPU use for `stall` seconds.")
    stall_data: Object | None = field(
        help="since, last_output_at, wait (the kernel function that its main thread waits in)."
    )
    needs_input: Object | None = field(
        help="While it waits for input: since, prompt, secret (whether the terminal does not echo)."
    )
    watch_data: Object | None = field(
        help="Of its watches: disabled, matches, suppressed (matches not sent), told (notifications sent)."
    )
    split: Flag = field(help="Whether stderr has a log of its own.")
    cols: Integer | None = field()
    rows: Integer | None = field()
    restart: Text | None = field(help="never, on-failure or always.")
    restart_at: Time | None = field(help="While it waits for a restart: when that is.")
    gave_up: Flag | None = field(help="Whether it ended because `restart_limit` was reached.")
    queue: Text | None = field(help="The queue that it was started in.")
    after: list[Text] = field(help="Ids of the processes that it waits for, or waited for.")
    on_boot: Flag | None = field(help="Whether it is run again after a boot.")
    sandbox: Object | None = field(help="Its sandbox: writable (directories), network (none, host); null without one.")
    started_by_boot: Flag | None = field(help="Whether its last run was started because the machine was booted.")
    limits: Object | None = field(help="Its limits: memory (bytes), cpus, pids.")
    peak_rss_bytes: Size | None = field(help="The highest memory use seen so far.")
    created_at: Time | None = field(help="When its first start was requested; `started_at` is that of its last run.")
    ready_by: Text | None = field(help="What makes it ready: log, port, http or uptime; null without such an option.")
    place: Text | None = field(help="The key of its place, as `holdfast backends` shows it; null on this machine.")
    typed: Object | None = field(help="The last input: by, at (exact to a second). Null where none came yet.")
    attached: list[Object] = field(
        help="The clients whose terminals show it now: by (their session; `dashboard` for a page), since."
    )


PROCESS_FIELDS = tuple(ProcessFields.FIELDS)


class GlanceFields(ProcessFields):
    """A process with the last line of its output and its use of CPU."""

    last_line: Text = field(help="The last line that is not empty, without escape sequences, secrets masked.")
    cpu_percent: Number | None = field(help="100 is one core.")
    history: Object = field(help="`ago` in seconds, `cpu_percent`, `rss_bytes`: an array each, oldest first.")


class TopFields(Record):
    """The resource use of one running process."""

    id: Text = field(pattern=PROCESS_ID)
    name: Text | None = field()
    status: Text = field()
    session: Text = field()
    task: Text | None = field()
    pid: Integer | None = field()
    started_at: Time | None = field()
    command: Text = field()
    limits: Object | None = field()
    cpu_percent: Number | None = field()
    cpu_seconds: Number | None = field()
    rss_bytes: Size | None = field()
    peak_rss_bytes: Size | None = field()
    ports: list[Integer] | None = field()
    restarts: Integer | None = field()
    created_at: Time | None = field(help="When its first start was requested.")
    history: Object = field(help="Lists of one length, oldest first: ago (seconds), cpu_percent, rss_bytes.")


TOP_FIELDS = tuple(TopFields.FIELDS)


class DigestProcessFields(ProcessFields):
    """A process that still runs for a session, or ended lately."""

    last_line: Text | None = field(help="The last line of its output; null if it was not read.")


class PortHolderFields(Record):
    """The process that listens on a TCP port now."""

    port: Integer = field()
    is_held: Flag = field(help="Whether a process listens on the port now.")
    process: Text | None = field(help="The id of the holdfast process that does; null if it is another program.")
    name: Text | None = field(help="The name of that process.")
    pid: Integer | None = field(help="The pid that listens; null if it is unknown.")
    program: Text | None = field(help="The name of its program.")


class TreeFields(Record):
    """One process of a tree."""

    pid: Integer = field()
    ppid: Integer = field()
    name: Text = field()
    cpu_seconds: Number | None = field()
    rss_bytes: Size | None = field()


class KillResultFields(Record):
    """The result of ending one process, or of sending it a signal."""

    id: Text = field()
    status: Text = field(help="`ended`, or `running` while a process of its tree is alive.")
    reason: Text | None = field(None)
    forced: Flag | None = field(None, help="Whether SIGKILL was needed.")
    survivors: list[Integer] = field(help="Pids of the tree that are still alive.")
    exit_code: Integer | None = field(None)
    signal: Integer | None = field(None)
    sent: Integer | None = field(None, help="The number of processes that got the signal.")
    already_ended: Flag = field(False, help="Whether it had ended before the request.")
    queue: Text | None = field(None, help="The queue that it was removed from, if it waited in one.")


class NotificationFields(Record):
    """A notification of a session."""

    id: Text = field(pattern="^note_[0-9a-f]{12}$")
    key: Text = field(help="The same for the same notification, also after crashes: for deduplication.")
    kind: Text = field()
    process: Text | None = field(help="Null if it is about several processes.")
    session: Text = field()
    origin: Object | None = field(help="The `origin` of the process.")
    at: Time = field()
    text: Text = field(help="A block of text for a model, with output quoted.")
    data: Object = field(help="The fields of this kind.")
    source: Literal["system"] = field(help="Always `system`: it does not come from the user.")
    summary: Text = field(help="One line for users.")
    event: Text = field(help="What happened, without the process: the part of `summary` that says it.")


NOTIFICATION_FIELDS = tuple(NotificationFields.FIELDS)


class SessionFields(Record):
    """A session with processes or pending notifications."""

    session: Text = field()
    running: Integer = field()
    ended: Integer = field()
    first_at: Time | None = field()
    last_at: Time | None = field()
    pending: Integer = field(help="The number of pending notifications.")


class AgentFields(Record):
    """A session that has a conversation with an agent."""

    session: Text = field()
    state: Literal["working", "waiting", "idle", "not_running"] = field(
        help="`waiting`: for the user. `not_running`: its agent is not started; the next message starts it."
    )
    why: Text = field(help="In a few words; may be empty.")
    model: Text | None = field()
    last_text: Text = field(help="The beginning of what was said last.")
    last_kind: Text | None = field(help="The kind of the newest entry of its log.")
    newest: Integer = field(help="The id of the newest entry.")
    changed_at: Time = field(help="When its log was last written.")
    process: Text | None = field(help="The agent's own process; null where none runs.")
    running: Integer = field(help="How many processes of the session run.")
    approvals: Integer = field(help="How many requests for approval wait for the user.")


class AgentLogEntryFields(Record):
    """An entry of the log of an agent (docs/agent.md)."""

    id: Integer = field()
    parent: Integer | None = field(help="The entry that it follows.")
    time: Time = field()
    kind: Text = field()
    content: Object = field(help="Depends on the kind. `omitted`: its size in bytes, where it is too long to be sent.")


class ApprovalFields(Record):
    """A request for approval, and the decision once there is one."""

    id: Text = field(pattern="^appr_[0-9a-f]{12}$")
    at: Time = field()
    session: Text = field()
    backend: Text = field()
    action: Literal["start", "restart", "send", "sudo", "tool"] = field()
    process: Text = field(help="The process to start or to write to; of `tool`, the call of the agent.")
    command: Text = field()
    cwd: Text = field()
    rule: Text | None = field()
    why: Text = field()
    asker: Flag = field(help="Whether the caller asks the approver itself.")
    state: Literal["pending", "approved", "denied", "expired", "withdrawn"] = field()
    scope: Text | None = field()
    decided_by: Text | None = field()
    decided_at: Time | None = field()
    reason: Text | None = field()
    expires_at: Time | None = field()
    shown_at: Time | None = field()
    used_at: Time | None = field()


class TimeEntryFields(Record):
    """When a part of a log arrived."""

    offset: Size = field(help="The first byte of that part.")
    time: Time = field(help="When it arrived, in Unix seconds.")
    cols: Integer = field(
        0, help="With `rows`: the terminal was resized then, or before the first entry. Else left out."
    )
    rows: Integer = field(0)


class ContextLineFields(Record):
    """A line of context around a match."""

    line: Integer | None = field(help="The line number, counted from 0; null if unknown.")
    offset: Size = field(help="The offset of the line.")
    end: Size = field()
    text: Text = field()
    cut: Flag = field(help="Whether the line is longer than `text`.")


class MatchFields(Record):
    """A line of a log that matches."""

    line: Integer | None = field(help="The line number, counted from 0; null if unknown.")
    offset: Size = field(help="The offset of the line.")
    end: Size = field()
    match_offset: Size = field(help="The offset of the match.")
    text: Text = field()
    column: Integer = field()
    length: Integer = field()
    cut: Flag = field(help="Whether the line is longer than `text`.")
    before: list[ContextLineFields] = field((), help="Lines of context before it.")
    after: list[ContextLineFields] = field((), help="Lines of context after it.")


class AwaitedMatchFields(Record):
    """The line that a wait with until=match found."""

    stream: Literal["out", "err"] = field()
    offset: Size = field(help="The offset of the line.")
    match_offset: Size = field(help="The offset of the match.")
    text: Text = field()
    column: Integer = field()
    length: Integer = field()
    cut: Flag = field(help="Whether the line is longer than `text`.")
    line: Integer | None = field(help="Always null: lines are not counted here.")


class SearchPositionFields(Record):
    """Where the next page of a search begins."""

    from_: Size | None = field()
    line: Integer | None = field()


class ScreenFields(Record):
    """The rendered screen of a terminal."""

    id: Text = field()
    lines: list[Text] = field()
    cursor: Object = field(help="row and col (from 0), visible.")
    cols: Integer = field()
    rows: Integer = field()
    title: Text | None = field()
    alternate: Flag = field()
    modes: list[Integer] = field(
        help="DEC private modes that are set and change what a terminal sends: 1 cursor keys, 66 keypad, 9 and 1000 to "
        "1016 mouse and focus, 2004 bracketed paste."
    )
    at: Size = field(help="The output offset that the screen shows.")
    gap: Size | None = field(help="Output before this offset was not drawn; null if all was.")


class QueueFields(Record):
    """A queue of processes."""

    name: Text = field()
    limit: Integer = field(help="How many of its processes run at once.")
    paused: Flag = field(help="Whether none is started.")
    running: list[Text] = field(help="Ids of those that run.")
    waiting: list[Text] = field(help="Ids of those that wait, in their order.")


class PassedOnFields(Record):
    """A process that moved to another session."""

    id: Text = field()
    to: Text = field()


class SinkFields(Record):
    """A sink and its state."""

    name: Text = field()
    way: Text | None = field()
    to: Text | None = field()
    state: Literal["ok", "quiet", "failing", "off", "gone"] = field()
    enabled: Flag = field()
    kinds: list[Text] | None = field()
    sessions: list[Text] | None = field()
    outcomes: Text | None = field()
    quiet: Text | None = field()
    tries: Integer | None = field()
    pending: Integer = field()
    dead: Integer = field()
    next_at: Time | None = field()
    sent: Integer = field()
    failed: Integer = field()
    last_sent_at: Time | None = field()
    last_error: Text | None = field()
    last_error_at: Time | None = field()


class SinkResultFields(Record):
    """The result of a test message."""

    sink: Text = field()
    sent: Flag = field()
    error: Text | None = field()
    took: Seconds = field()


class DeadLetterFields(Record):
    """A message that a sink gave up on."""

    id: Integer = field()
    sink: Text = field()
    notification: Text | None = field()
    kind: Text | None = field()
    process: Text | None = field()
    session: Text | None = field()
    at: Time | None = field()
    attempts: Integer = field()
    error: Text | None = field()
    dead_at: Time | None = field()


class SettingFields(Record):
    """One setting of the instance."""

    key: Text = field()
    kind: Text = field(help="number, size, seconds, switch, text or program.")
    value: Text = field(help="As JSON writes it; a text as it is.")
    default: Text = field()
    about: Text = field()


class CheckFields(Record):
    """One check of this machine."""

    name: Text = field()
    ok: Flag = field()
    detail: Text = field()
    degrades: Text | None = field(help="What works less well without it.")


class VerifiedFields(Record):
    """The result of checking the audit log."""

    entries: Integer = field()
    head: Text = field()
    fault: Text | None = field()
    seq: Integer | None = field()


class PlaceFields(Record):
    """A place of a backend."""

    key: Text = field(help="Identifies it.")
    task: Text | None = field(help="The task or session whose processes run in it; null where all share it.")
    options: Object = field(help="What it was made with, such as the image or the host.")
    state: Literal["connected", "unreachable", "closed"] = field(
        help="`closed`: it is not connected, because nothing runs in it."
    )
    processes: Integer = field(help="How many processes run in it.")
    trouble: Text | None = field(help="Why it does not answer; null while it does, and while it is closed.")


class BackendFields(Record):
    """A backend: a way to get places where commands run."""

    name: Text = field()
    kind: Text = field(help="Such as `podman` or `ssh`.")
    state: Literal["ready", "unusable"] = field()
    detail: Text = field(help="A version; or what is missing, and what to do about it.")
    places: list[PlaceFields] = field(help="Those that were used, also closed ones.")


class PluginTabFields(Record):
    """The page of a plugin."""

    path: Text = field()
    position: Text = field(help="`end`, `after:PAGE` or `before:PAGE`.")
    override: Text | None = field(help="The path of the page that it takes the place of.")
    hidden: Flag = field(help="Whether no link leads to it.")


class PluginFields(Record):
    """A plugin of the dashboard."""

    name: Text = field()
    label: Text = field()
    description: Text = field()
    icon: Text = field()
    version: Text = field()
    tab: PluginTabFields | None = field()
    slots: list[Text] = field(help="The slots that it says it fills.")
    entry: Text = field(help="Its script, served below `/dashboard-plugins/NAME/`.")
    css: Text | None = field()
    has_api: Flag = field(help="Whether it has a router below `/api/plugins/NAME/`.")
    integrity: Object = field(help="Hashes of its files, by path.")
    source: Literal["user", "shipped"] = field()
    enabled: Flag = field(help="Whether its code runs and its files are served.")
    error: Text | None = field(help="Why it cannot be used.")
    directory: Text = field()


class ThemeFields(Record):
    """A theme of the dashboard."""

    name: Text = field()
    label: Text = field()
    description: Text = field()
    source: Literal["user", "shipped"] = field()
    error: Text | None = field(help="Why it cannot be used.")
    definition: Object | None = field(help="What its file says; null for the two of the page itself.")
