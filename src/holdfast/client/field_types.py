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
    id: str | None
    name: str | None
    session: str | None
    task: str | None
    parent_session: str | None
    acts_for: str | None
    backend: str | None
    image: str | None
    host: str | None
    cwd: str | os.PathLike[str] | None
    environ: Mapping[str, str] | None
    env: Mapping[str, str] | None
    clean: bool
    pty: bool
    size: tuple[int, int] | None
    stdin: bool
    split: bool
    lifetime: Literal["session", "daemon", "detached"] | None
    on_boot: bool
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
    queue: str | None
    after: Sequence[str] | None
    after_success: Sequence[str] | None
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
    sandbox: bool
    writable: Sequence[str] | None
    network: Literal["none", "host"] | None
    sudo: bool
    gate: bool
    shell: str | None
    labels: Mapping[str, str] | None
    attached: bool


class ProcessAttributes:
    """The process object. Times are unix seconds; unknown values are null."""

    id: str
    name: str | None
    """Can be used instead of the id. Unique among running processes."""
    command: str
    """The command text, or the argument list quoted for a shell."""
    argv: list[str]
    """The program and its arguments, as executed."""
    cwd: str
    session: str
    """The owner session, which gets its notifications."""
    task: str | None
    """A second key to group processes by."""
    backend: str
    """Where it runs: `local`, or the name of another backend."""
    pid: int | None
    """The pid of the command itself; kept after its end."""
    status: str
    """`waiting`: for its turn in a queue, or for other processes. `restarting`: between two runs. `unreachable`: the place where it runs does not answer."""
    reason: str | None
    """Why it ended: exited, signaled, killed, deadline, oom, lost, failed_start or skipped; null until then."""
    exit_code: int | None
    """As the kernel reports it; null if it was ended by a signal or is unknown."""
    signal: int | None
    """The number of the signal that ended it."""
    started_at: float | None
    ended_at: float | None
    """When it ended; of one that is lost, when that was found."""
    ready: bool | None
    """Whether it is ready, by its `ready_…` option; null without such an option."""
    output_bytes: int
    """Bytes written in all."""
    dropped_bytes: int
    """How many of these are no longer kept."""
    log_cap: int
    """The most bytes of output that are kept."""
    lifetime: str
    """session, daemon or detached."""
    notify: str | None
    """Which ends its session is notified of."""
    watch: list[str]
    """The texts and patterns of its watches."""
    pty: bool
    """Whether it has a terminal."""
    stdin_open: bool
    """Whether `send` can write to it."""
    deadline_at: float | None
    leftover_pids: list[int]
    """Descendants that outlived the command."""
    restarts: int | None
    """The number of restarts."""
    ports: list[int] | None
    """TCP ports that its tree listens on."""
    cpu_seconds: float | None
    """CPU time of its tree."""
    rss_bytes: int | None
    """Memory of its tree."""
    labels: dict[str, str]
    """Texts that the caller attached to it."""
    killed_by: str | None
    """The session that ended it; `dashboard` for a page of the dashboard."""
    forced: bool | None
    """Whether SIGKILL was needed; null if it ended by itself."""
    exit_offset: int | None
    """The output offset at the exit; its descendants wrote the rest."""
    stale: bool
    """Whether it has run for longer than the configured age."""
    trouble: str | None
    """A problem in running it, such as a full disk."""
    ready_at: float | None
    """When it became ready."""
    ready_trouble: str | None
    """Why it is not ready, if known."""
    stalled: bool
    """Whether it had no output and no CPU use for `stall` seconds."""
    stall_data: Message | None
    """since, last_output_at, wait (the kernel function that its main thread waits in)."""
    needs_input: Message | None
    """While it waits for input: since, prompt, secret (whether the terminal does not echo)."""
    watch_data: Message | None
    """Of its watches: disabled, matches, suppressed (matches not sent), told (notifications sent)."""
    split: bool
    """Whether stderr has a log of its own."""
    cols: int | None
    rows: int | None
    restart: str | None
    """never, on-failure or always."""
    restart_at: float | None
    """While it waits for a restart: when that is."""
    gave_up: bool | None
    """Whether it ended because `restart_limit` was reached."""
    queue: str | None
    """The queue that it was started in."""
    after: list[str]
    """Ids of the processes that it waits for, or waited for."""
    on_boot: bool | None
    """Whether it is run again after a boot."""
    sandbox: Message | None
    """Its sandbox: writable (directories), network (none, host); null without one."""
    started_by_boot: bool | None
    """Whether its last run was started because the machine was booted."""
    limits: Message | None
    """Its limits: memory (bytes), cpus, pids."""
    peak_rss_bytes: int | None
    """The highest memory use seen so far."""
    created_at: float | None
    """When its first start was requested; `started_at` is that of its last run."""
    ready_by: str | None
    """What makes it ready: log, port, http or uptime; null without such an option."""
    place: str | None
    """The key of its place, as `holdfast backends` shows it; null on this machine."""
    typed: Message | None
    """The last input: by, at (exact to a second). Null where none came yet."""
    attached: list[Message]
    """The clients whose terminals show it now: by (their session; `dashboard` for a page), since."""


class KillResultAttributes:
    """The result of ending one process, or of sending it a signal."""

    id: str
    status: str
    """`ended`, or `running` while a process of its tree is alive."""
    reason: str | None
    forced: bool | None
    """Whether SIGKILL was needed."""
    survivors: list[int]
    """Pids of the tree that are still alive."""
    exit_code: int | None
    signal: int | None
    sent: int | None
    """The number of processes that got the signal."""
    already_ended: bool
    """Whether it had ended before the request."""
    queue: str | None
    """The queue that it was removed from, if it waited in one."""


class NotificationAttributes:
    """A notification of a session."""

    id: str
    key: str
    """The same for the same notification, also after crashes: for deduplication."""
    kind: str
    process: str | None
    """Null if it is about several processes."""
    session: str
    origin: Message | None
    """The `origin` of the process."""
    at: float
    text: str
    """A block of text for a model, with output quoted."""
    data: Message
    """The fields of this kind."""
    source: str
    """Always `system`: it does not come from the user."""
    summary: str
    """One line for users."""
    event: str
    """What happened, without the process: the part of `summary` that says it."""


class ApprovalAttributes:
    """A request for approval, and the decision once there is one."""

    id: str
    at: float
    session: str
    backend: str
    action: str
    process: str
    """The process to start or to write to; of `tool`, the call of the agent."""
    command: str
    cwd: str
    rule: str | None
    why: str
    asker: bool
    """Whether the caller asks the approver itself."""
    state: str
    scope: str | None
    decided_by: str | None
    decided_at: float | None
    reason: str | None
    expires_at: float | None
    shown_at: float | None
    used_at: float | None
