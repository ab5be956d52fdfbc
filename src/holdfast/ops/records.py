"""Records that replies are made of: the process object, the notification object and others."""

from __future__ import annotations

from holdfast.ops.declare import PROCESS_ID, Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import Flag, Integer, Number, Object, Seconds, Size, Text, Time


class ProcessFields(Record):
    """The process object. Times are unix seconds; what is unknown is null."""

    __slots__ = ()

    id: Text = field(pattern=PROCESS_ID)
    name: Text | None = field(help="Stands for the id. Unique among running processes.")
    command: Text = field(help="The command text, or the argument list quoted for a shell.")
    argv: list[Text] = field(help="What is executed.")
    cwd: Text = field()
    session: Text = field(help="The session that owns it and gets its notifications.")
    task: Text | None = field(help="A second key to group processes by.")
    backend: Text = field(help="Where it runs.")
    pid: Integer | None = field(help="Of the command itself; null once it has ended.")
    status: Literal["running", "ended", "unreachable"] = field()
    reason: Text | None = field(help="Why it ended: exited, signaled, killed, deadline, oom, lost; null while it runs.")
    exit_code: Integer | None = field(help="The kernel's; null where it was ended by a signal, or is unknown.")
    signal: Integer | None = field(help="The number of the signal that ended it.")
    started_at: Time | None = field()
    ended_at: Time | None = field()
    ready: Flag | None = field(help="Whether it is usable, as its ready_… option defines; null without one.")
    output_bytes: Size = field(help="How much it has written.")
    dropped_bytes: Size = field(help="How much of that is no longer kept.")
    log_cap: Size = field(help="How much of its output is kept.")
    lifetime: Text = field(help="session, daemon or detached.")
    notify: Text | None = field(help="Which ends its session is notified of.")
    watch: list[Text] = field(help="Texts and patterns that its output is watched for.")
    pty: Flag = field(help="Whether it has a terminal.")
    stdin_open: Flag = field()
    deadline_at: Time | None = field()
    leftover_pids: list[Integer] = field(help="Descendants that outlived the command.")
    restarts: Integer | None = field(help="How often it was run again.")
    ports: list[Integer] | None = field(help="TCP ports that the tree listens on.")
    cpu_seconds: Number | None = field(help="Processor time of the tree.")
    rss_bytes: Size | None = field(help="Memory of the tree.")
    labels: dict[str, Text] = field(help="Texts that the caller attached to it.")
    killed_by: Text | None = field(help="The session that asked for its end.")
    forced: Flag | None = field(help="Whether SIGKILL was needed; null where nobody asked for its end.")
    exit_offset: Size | None = field(help="Where the output stood at the exit; descendants wrote the rest.")
    stale: Flag = field(help="It runs for longer than the configured age.")
    trouble: Text | None = field(help="What keeps it from going on as usual, such as a full disk.")
    ready_at: Time | None = field(help="When it became ready.")
    ready_trouble: Text | None = field(help="What keeps it from being ready, as far as that is known.")
    stalled: Flag = field(help="No output and no use of the processor for as long as `stall` says.")
    stall_data: Object | None = field(help="since, last_output_at, wait (what its main thread waits for).")
    needs_input: Object | None = field(help="since, prompt, secret (what is typed is not echoed).")
    watch_data: Object | None = field(help="disabled, matches, suppressed (held back), told (notifications).")
    split: Flag = field(help="Whether stderr is kept apart from stdout.")
    cols: Integer | None = field()
    rows: Integer | None = field()
    restart: Text | None = field(help="never, on-failure or always.")
    restart_at: Time | None = field(help="Between two runs: when the next one starts.")
    gave_up: Flag | None = field(help="It ended because it had to be restarted too often in a row.")
    limits: Object | None = field(help="What it may use at most: memory (bytes), cpus, pids.")
    peak_rss_bytes: Size | None = field(help="The most memory that it was seen to use.")


PROCESS_FIELDS = tuple(ProcessFields.FIELDS)


class TopFields(Record):
    """What one running process uses."""

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
    history: Object = field(help="Lists of one length, oldest first: ago (seconds), cpu_percent, rss_bytes.")


TOP_FIELDS = tuple(TopFields.FIELDS)


class DigestProcessFields(ProcessFields):
    """A process that still runs for a session."""

    last_line: Text | None = field(help="Of its output; null where it was not read.")


class TreeFields(Record):
    """One process of a tree."""

    pid: Integer = field()
    ppid: Integer = field()
    name: Text = field()
    cpu_seconds: Number | None = field()
    rss_bytes: Size | None = field()


class KillResultFields(Record):
    """What became of one process that was to end, or of a signal to it."""

    id: Text = field()
    status: Text = field(help="`ended`, or `running` while something of it is alive.")
    reason: Text | None = field(None)
    forced: Flag | None = field(None, help="Whether SIGKILL was needed.")
    survivors: list[Integer] = field(help="Pids of the tree that are still alive.")
    exit_code: Integer | None = field(None)
    signal: Integer | None = field(None)
    sent: Integer | None = field(None, help="How many processes got the signal.")


class NotificationFields(Record):
    """A notification of a session."""

    id: Text = field(pattern="^note_[0-9a-f]{12}$")
    key: Text = field(help="The same for the same notification, also after any restart.")
    kind: Text = field()
    process: Text | None = field(help="Null where it concerns several.")
    session: Text = field()
    origin: Object | None = field(help="As given when the process was started.")
    at: Time = field()
    text: Text = field(help="What a model is shown.")
    data: Object = field(help="The fields of its kind.")
    source: Literal["system"] = field(help="Whatever it quotes, no user said it.")
    summary: Text = field(help="One line for people; `text` is for models.")


NOTIFICATION_FIELDS = tuple(NotificationFields.FIELDS)


class SessionFields(Record):
    """A session with processes or pending notifications."""

    session: Text = field()
    running: Integer = field()
    ended: Integer = field()
    first_at: Time | None = field()
    last_at: Time | None = field()
    pending: Integer = field(help="Notifications that are not acknowledged.")


class ApprovalFields(Record):
    """A request for approval, and the decision once there is one."""

    id: Text = field(pattern="^appr_[0-9a-f]{12}$")
    at: Time = field()
    session: Text = field()
    backend: Text = field()
    action: Literal["start", "restart", "send", "sudo"] = field()
    process: Text = field(help="The process that is to be started or typed into.")
    command: Text = field()
    cwd: Text = field()
    rule: Text | None = field()
    why: Text = field()
    asker: Flag = field(help="The caller asks the approver itself.")
    state: Literal["pending", "approved", "denied", "expired", "withdrawn"] = field()
    scope: Text | None = field()
    decided_by: Text | None = field()
    decided_at: Time | None = field()
    reason: Text | None = field()
    expires_at: Time | None = field()
    shown_at: Time | None = field()
    used_at: Time | None = field()


class ContextLineFields(Record):
    """A line of a log beside one that matches."""

    line: Integer | None = field(help="Its number, from 1; null where it was not counted.")
    offset: Size = field(help="Where the line begins.")
    end: Size = field()
    text: Text = field()
    cut: Flag = field(help="The line is longer than what is shown.")


class MatchFields(Record):
    """A line of a log that matches."""

    line: Integer | None = field(help="Its number, from 1; null where it was not counted.")
    offset: Size = field(help="Where the line begins.")
    end: Size = field()
    match_offset: Size = field(help="Where the match begins.")
    text: Text = field()
    column: Integer = field()
    length: Integer = field()
    cut: Flag = field(help="The line is longer than what is shown.")
    before: list[ContextLineFields] = field((), help="Lines before it, where they were asked for.")
    after: list[ContextLineFields] = field((), help="Lines after it, where they were asked for.")


class AwaitedMatchFields(Record):
    """A line of output that a wait was for."""

    stream: Literal["out", "err"] = field()
    offset: Size = field(help="Where the line begins.")
    match_offset: Size = field(help="Where the match begins.")
    text: Text = field()
    column: Integer = field()
    length: Integer = field()
    cut: Flag = field(help="The line is longer than what is shown.")
    line: Integer | None = field(help="Null: lines are not counted here.")


class SearchPositionFields(Record):
    """Where the next page of a search begins."""

    from_: Size | None = field()
    line: Integer | None = field()


class ScreenFields(Record):
    """What a terminal shows."""

    id: Text = field()
    lines: list[Text] = field()
    cursor: Object = field(help="row, col, visible")
    cols: Integer = field()
    rows: Integer = field()
    title: Text | None = field()
    alternate: Flag = field()
    at: Size = field(help="How far the output was read for it.")
    gap: Size | None = field(help="Where output was left out before it; null for none.")


class PassedOnFields(Record):
    """A process that went to another session."""

    id: Text = field()
    to: Text = field()


class SinkFields(Record):
    """A sink and what it did."""

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
    """What came of a test message."""

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


class CheckFields(Record):
    """One thing that this machine offers or lacks."""

    name: Text = field()
    ok: Flag = field()
    detail: Text = field()
    degrades: Text | None = field(help="What works less well without it.")


class VerifiedFields(Record):
    """Whether the audit log is whole."""

    entries: Integer = field()
    head: Text = field()
    fault: Text | None = field()
    seq: Integer | None = field()
