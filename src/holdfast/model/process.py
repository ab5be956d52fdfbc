"""One process as the daemon knows it: its id and name, its specification, its state and its output."""

from __future__ import annotations

import os
import re
from typing import Any, Literal, NewType, TypeAlias

from holdfast.model.lifecycle import Ended, Queued, Requested, Restarting, Running, State, Stopping
from holdfast.model.notices.progress import Progress
from holdfast.model.notices.watching import WatchState
from holdfast.model.probes.prompts import InputNeed
from holdfast.model.probes.readiness import KINDS, Readiness, ReadinessKind
from holdfast.model.probes.stalls import Stall
from holdfast.records import Struct, asdict, field, names

ProcessId = NewType("ProcessId", str)
PREFIX = "proc_"

_ID = re.compile(r"proc_[0-9a-f]{12}\Z")
_ID_PREFIX = re.compile(r"(?:proc_)?([0-9a-f]{4,12})\Z")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")

Lifetime: TypeAlias = Literal["session", "daemon", "detached"]
DeadlineAction: TypeAlias = Literal["kill", "notify"]
RestartPolicy: TypeAlias = Literal["never", "on-failure", "always"]
SandboxNetwork: TypeAlias = Literal["none", "host"]
Notify: TypeAlias = Literal["any", "failure", "success", "never"]


def new_id() -> ProcessId:
    return ProcessId(f"{PREFIX}{os.urandom(6).hex()}")


def is_id(text: str) -> bool:
    return _ID.match(text) is not None


def id_prefix(text: str) -> str | None:
    """`text` as a prefix of ids; None when it cannot be one."""
    found = _ID_PREFIX.match(text)
    return PREFIX + found[1] if found else None


def is_name(text: str) -> bool:
    """Whether it is a valid name of a process. A name must not look like an id."""
    return _NAME.match(text) is not None and not text.startswith(PREFIX)


class Meta(Struct, frozen=True):
    """The specification of a process, fixed at its start. Stored in its bundle, from which its row can be rebuilt."""

    id: ProcessId
    command: str
    argv: tuple[str, ...]
    cwd: str
    session: str
    requested_at: float
    name: str | None = None
    task: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    """Set by the caller; holdfast does not interpret them."""
    parent_session: str | None = None
    acts_for: str | None = None
    """The session that its own connections are bound to; None for the one that owns it."""
    backend: str = "local"
    place: str | None = None
    """The key of the place of that backend; None for this machine."""
    image: str | None = None
    host: str | None = None
    lifetime: Lifetime = "detached"
    pty: bool = False
    stdin: bool = False
    split: bool = False
    cols: int | None = None
    rows: int | None = None
    log_cap: int = 0
    deadline: float | None = None
    deadline_action: DeadlineAction = "kill"
    restart: RestartPolicy = "never"
    restart_limit: int = 5
    """How many restarts in a row there are at most; 0 for no limit."""
    restart_delay: float = 1.0
    """Before the first restart; each further one waits twice as long."""
    on_boot: bool = False
    """Whether it is run again when the daemon first starts after a boot."""
    success_codes: tuple[int, ...] = (0,)
    stop_cmd: str | None = None
    ready_log: str | None = None
    ready_port: int | None = None
    ready_http: str | None = None
    ready_uptime: float | None = None
    ready_timeout: float | None = None
    stall: float | None = None
    notify: Notify = "any"
    """Which ends notify the owner session. It concerns ends alone: see `HeldProcess.notify` for what is in effect."""
    end_after_watch: bool = False
    """It is watched and `notify` was not given: `notify` is `never` until its watch is disabled."""
    watch: tuple[str, ...] = ()
    watch_regex: tuple[str, ...] = ()
    check_interval: float | None = None
    queue: str | None = None
    """The queue that limits how many run at once."""
    after: tuple[str, ...] = ()
    """Ids of the processes that end before it is started."""
    after_success: tuple[str, ...] = ()
    """The same, and it is not started at all unless they succeed."""
    origin: dict[str, Any] | None = None
    """The address of its session. Returned with each notice, unchanged."""
    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None
    sandbox: bool = False
    writable: tuple[str, ...] = ()
    """Directories that its sandbox may write to, beside its own."""
    network: SandboxNetwork | None = None
    """That of its sandbox; None for none."""
    given: tuple[str, ...] = ()
    """The names of the variables that were given for it; only its bundle has their values."""
    gated: bool = False
    """Whether it was judged before it was started: what it starts by itself is judged, too."""
    sudo: bool = False
    """Whether `sudo` in it gets the password from holdfast."""
    fingerprint: str | None = None
    """Of the start request with its idempotency key, so that the key cannot be used for another request."""

    def to_json(self) -> dict[str, Any]:
        """The fields that differ from the defaults: it is written and read with every start."""
        return {
            name: value for name, value in asdict(self).items() if name not in _DEFAULTS or value != _DEFAULTS[name]
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Meta:
        """The meta of a bundle or row, but for fields of a newer release. Raises TypeError where some are missing."""
        known = {key: value[key] for key in _META if key in value}
        lists = {"argv": tuple(value.get("argv") or ()), "success_codes": tuple(value.get("success_codes") or (0,))}
        lists |= {
            name: tuple(value.get(name) or ())
            for name in ("watch", "watch_regex", "after", "after_success", "given", "writable")
        }
        return cls(**{**known, **lists})

    @property
    def duplicate_key(self) -> tuple[object, ...]:
        """Equal for duplicate starts: session, command and directory."""
        return (self.session, self.argv, self.cwd)

    @property
    def limits(self) -> dict[str, int | float]:
        """Resource limits; empty when none were given."""
        given = {"memory": self.memory, "cpus": self.cpus, "pids": self.pids}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def readiness_kind(self) -> ReadinessKind | None:
        """Its readiness rule; None when it has none."""
        for kind in KINDS:
            if getattr(self, f"ready_{kind}") is not None:
                return kind
        return None

    @property
    def streams(self) -> tuple[str, ...]:
        return ("out", "err") if self.split else ("out",)


#: The fields of Meta, and the values of those that have a default.
_META = names(Meta)
_EMPTY = Meta(ProcessId(""), "", (), "", "", 0.0)
_DEFAULTS: dict[str, object] = {name: getattr(_EMPTY, name) for name in _META[_META.index("name") :]}


class StreamExtent(Struct, frozen=True):
    """The extent of a log: bytes before `first` were dropped."""

    first: int = 0
    end: int = 0
    closed: bool = False


class Leftover(Struct, frozen=True):
    """A descendant that outlived the command. The start time distinguishes it from a later user of the pid."""

    pid: int
    start: int


class LastInput(Struct, frozen=True):
    """The last input that a client sent."""

    by: str
    at: float


class HeldProcess(Struct, frozen=True):
    """A process with its state. Immutable: a change makes a new object."""

    meta: Meta
    state: State = Requested()
    streams: dict[str, StreamExtent] = field(default_factory=dict)
    exit_offset: int | None = None
    leftovers: tuple[Leftover, ...] = ()
    stdin_open: bool = False
    cols: int | None = None
    rows: int | None = None
    trouble: str | None = None
    deadline_notified: bool = False
    run: int = 0
    """How often it was run again."""
    streak: int = 0
    """How many restarts in a row its policy has made."""
    gave_up: bool = False
    """Whether the limit of restarts was reached."""
    boot_run: int | None = None
    """The last run that was planned because the machine was booted."""
    readiness: Readiness | None = None
    stall: Stall | None = None
    need: InputNeed | None = None
    watching: WatchState | None = None
    progress: Progress | None = None
    cpu_seconds: float | None = None
    """Used until the end; that of a running process is measured on request."""
    peak_rss: int | None = None
    typed: LastInput | None = None
    """Exact to a second."""
    group: str | None = None
    """The cgroup of its tree, and the one that counts its memory: reported by the keeper, and not stored."""
    memory_group: str | None = None

    @property
    def id(self) -> ProcessId:
        return self.meta.id

    @property
    def notify(self) -> Notify:
        """Which ends notify the owner session now. A watch that was disabled turns on the notification of any end,
        unless it was explicitly turned off.
        """
        turned_on = self.watching is not None and self.watching.notify_on
        is_off = self.meta.notify == "never" and not self.meta.end_after_watch
        return "any" if turned_on and not is_off else self.meta.notify

    @property
    def is_active(self) -> bool:
        """Until it has ended: also while it waits in a queue, while it is being stopped, and between two runs."""
        return isinstance(self.state, (Running, Stopping, Restarting, Queued))

    @property
    def is_queued(self) -> bool:
        """Whether it waits for its first start."""
        return isinstance(self.state, Queued)

    @property
    def is_restarting(self) -> bool:
        """Whether it is between two runs."""
        return isinstance(self.state, Restarting)

    @property
    def restart_at(self) -> float | None:
        return self.state.due if isinstance(self.state, Restarting) else None

    @property
    def is_up(self) -> bool:
        """Whether a run of it is alive now."""
        return isinstance(self.state, (Running, Stopping))

    @property
    def has_ended(self) -> bool:
        return isinstance(self.state, Ended)

    @property
    def readiness_now(self) -> Readiness | None:
        """The readiness of this run; None for that of another run."""
        mark = self.readiness
        return mark if mark is not None and mark.run == self.started_at else None

    @property
    def is_ready(self) -> bool | None:
        """None: no readiness rule, or not known yet. False: it cannot become ready any more, as after its end."""
        if self.meta.readiness_kind is None:
            return None
        if self.has_ended:
            return False
        mark = self.readiness_now
        return mark.ready if mark is not None and self.is_up else None

    @property
    def output_closed(self) -> bool:
        """Nothing can be appended to its log any more."""
        return self.has_ended and all(stream.closed for stream in self.streams.values())

    @property
    def started_at(self) -> float | None:
        match self.state:
            case Running(at=at) | Stopping(at=at):
                return at
            case Ended(started_at=at) | Restarting(last=Ended(started_at=at)):
                return at
            case _:
                return None

    @property
    def ended_at(self) -> float | None:
        """When it ended; of an end that was not observed, when it became known."""
        if not isinstance(self.state, Ended):
            return None
        return self.state.known_at if self.state.ended_at is None else self.state.ended_at

    @property
    def pid(self) -> int | None:
        return None if isinstance(self.state, (Requested, Queued, Restarting)) else self.state.pid

    @property
    def deadline_at(self) -> float | None:
        """The deadline of this run; each run has its own."""
        if self.meta.deadline is None or self.is_restarting or self.is_queued:
            return None
        return (self.started_at or self.meta.requested_at) + self.meta.deadline
