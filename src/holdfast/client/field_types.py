"""Types of fields, for type checkers: nothing imports this at runtime.

Written by `scripts/generate`: do not edit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from holdfast.wire.frames import Message


class RunOptions(TypedDict, total=False):
    """How a command is started. What is None or not given has the daemon's default."""

    asker: bool
    approval_wait: float | None
    name: str | None
    session: str | None
    task: str | None
    parent_session: str | None
    cwd: str | os.PathLike[str] | None
    environ: Mapping[str, str] | None
    env: Mapping[str, str] | None
    clean: bool
    pty: bool
    size: tuple[int, int] | None
    stdin: bool
    split: bool
    lifetime: Literal["session", "daemon", "detached"] | None
    deadline: float | None
    deadline_action: Literal["kill", "notify"] | None
    ready_log: str | None
    ready_port: int | None
    ready_http: str | None
    ready_uptime: float | None
    ready_timeout: float | None
    stall: float | None
    notify: Literal["any", "failure", "success", "never"] | None
    watch: Sequence[str] | None
    watch_regex: Sequence[str] | None
    check_interval: float | None
    origin: Mapping[str, object] | None
    restart: Literal["never", "on-failure", "always"] | None
    restart_limit: int | None
    restart_delay: float | None
    success_codes: Sequence[int] | None
    stop_cmd: str | None
    if_running: Literal["reuse", "replace", "error", "allow"] | None
    log_cap: int | str | None
    memory: int | str | None
    cpus: float | None
    pids: int | None
    nice: int | None
    sudo: bool
    gate: bool
    shell: str | None
    labels: Mapping[str, str] | None
    attached: bool


class ProcessAttributes:
    """The process object. Times are unix seconds; what is unknown is null."""

    id: str
    name: str | None
    """Stands for the id. Unique among running processes."""
    command: str
    """The command text, or the argument list quoted for a shell."""
    argv: list[str]
    """What is executed."""
    cwd: str
    session: str
    """The session that owns it and gets its notifications."""
    task: str | None
    """A second key to group processes by."""
    backend: str
    """Where it runs."""
    pid: int | None
    """Of the command itself; null once it has ended."""
    status: str
    reason: str | None
    """Why it ended: exited, signaled, killed, deadline, oom, lost; null while it runs."""
    exit_code: int | None
    """The kernel's; null where it was ended by a signal, or is unknown."""
    signal: int | None
    """The number of the signal that ended it."""
    started_at: float | None
    ended_at: float | None
    ready: bool | None
    """Whether it is usable, as its ready_… option defines; null without one."""
    output_bytes: int
    """How much it has written."""
    dropped_bytes: int
    """How much of that is no longer kept."""
    log_cap: int
    """How much of its output is kept."""
    lifetime: str
    """session, daemon or detached."""
    notify: str | None
    """Which ends its session is notified of."""
    watch: list[str]
    """Texts and patterns that its output is watched for."""
    pty: bool
    """Whether it has a terminal."""
    stdin_open: bool
    deadline_at: float | None
    leftover_pids: list[int]
    """Descendants that outlived the command."""
    restarts: int | None
    """How often it was run again."""
    ports: list[int] | None
    """TCP ports that the tree listens on."""
    cpu_seconds: float | None
    """Processor time of the tree."""
    rss_bytes: int | None
    """Memory of the tree."""
    labels: dict[str, str]
    """Texts that the caller attached to it."""
    killed_by: str | None
    """The session that asked for its end."""
    forced: bool | None
    """Whether SIGKILL was needed; null where nobody asked for its end."""
    exit_offset: int | None
    """Where the output stood at the exit; descendants wrote the rest."""
    stale: bool
    """It runs for longer than the configured age."""
    trouble: str | None
    """What keeps it from going on as usual, such as a full disk."""
    ready_at: float | None
    """When it became ready."""
    ready_trouble: str | None
    """What keeps it from being ready, as far as that is known."""
    stalled: bool
    """No output and no use of the processor for as long as `stall` says."""
    stall_data: Message | None
    """since, last_output_at, wait (what its main thread waits for)."""
    needs_input: Message | None
    """since, prompt, secret (what is typed is not echoed)."""
    watch_data: Message | None
    """disabled, matches, suppressed (held back), told (notifications)."""
    split: bool
    """Whether stderr is kept apart from stdout."""
    cols: int | None
    rows: int | None
    restart: str | None
    """never, on-failure or always."""
    restart_at: float | None
    """Between two runs: when the next one starts."""
    gave_up: bool | None
    """It ended because it had to be restarted too often in a row."""
    limits: Message | None
    """What it may use at most: memory (bytes), cpus, pids."""
    peak_rss_bytes: int | None
    """The most memory that it was seen to use."""


class KillResultAttributes:
    """What became of one process that was to end, or of a signal to it."""

    id: str
    status: str
    """`ended`, or `running` while something of it is alive."""
    reason: str | None
    forced: bool | None
    """Whether SIGKILL was needed."""
    survivors: list[int]
    """Pids of the tree that are still alive."""
    exit_code: int | None
    signal: int | None
    sent: int | None
    """How many processes got the signal."""


class NotificationAttributes:
    """A notification of a session."""

    id: str
    key: str
    """The same for the same notification, also after any restart."""
    kind: str
    process: str | None
    """Null where it concerns several."""
    session: str
    origin: Message | None
    """As given when the process was started."""
    at: float
    text: str
    """What a model is shown."""
    data: Message
    """The fields of its kind."""
    source: str
    """Whatever it quotes, no user said it."""
    summary: str
    """One line for people; `text` is for models."""


class ApprovalAttributes:
    """A request for approval, and the decision once there is one."""

    id: str
    at: float
    session: str
    backend: str
    action: str
    process: str
    """The process that is to be started or typed into."""
    command: str
    cwd: str
    rule: str | None
    why: str
    asker: bool
    """The caller asks the approver itself."""
    state: str
    scope: str | None
    decided_by: str | None
    decided_at: float | None
    reason: str | None
    expires_at: float | None
    shown_at: float | None
    used_at: float | None
