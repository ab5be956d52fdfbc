"""One process as the daemon knows it: what was asked for, where its life stands, what it wrote."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, TypeAlias

from holdfast.model.ids import ProcessId
from holdfast.model.lifecycle import Ended, Requested, Running, State, Stopping, Waiting
from holdfast.model.progress import Progress
from holdfast.model.prompts import InputNeed
from holdfast.model.readiness import Readiness
from holdfast.model.stalls import Stall
from holdfast.model.watching import WatchState

Lifetime: TypeAlias = Literal["session", "daemon", "detached"]
DeadlineAction: TypeAlias = Literal["kill", "notify"]
RestartPolicy: TypeAlias = Literal["never", "on-failure", "always"]
Notify: TypeAlias = Literal["any", "failure", "success", "never"]


@dataclass(frozen=True, slots=True)
class Meta:
    """What is fixed when a process is asked for. Kept in its bundle, so that a row can be made of it again."""

    id: ProcessId
    command: str
    argv: tuple[str, ...]
    cwd: str
    session: str
    requested_at: float
    name: str | None = None
    task: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    """What the caller noted on it. Means nothing to holdfast."""
    parent_session: str | None = None
    backend: str = "local"
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
    """Before the first of them; each further one waits twice as long."""
    success_codes: tuple[int, ...] = (0,)
    stop_cmd: str | None = None
    ready_log: str | None = None
    ready_port: int | None = None
    ready_http: str | None = None
    ready_uptime: float | None = None
    ready_timeout: float | None = None
    stall: float | None = None
    notify: Notify = "any"
    """Which ends notify the owner session. It concerns ends alone: see `Process.notify` for what is in effect."""
    end_after_watch: bool = False
    """Nothing was said about its end and it is watched: `notify` is `never` until its watch is disabled."""
    watch: tuple[str, ...] = ()
    watch_regex: tuple[str, ...] = ()
    check_interval: float | None = None
    origin: dict[str, Any] | None = None
    """The address its session was reached at. Given back with each notice, unchanged."""
    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None
    given: tuple[str, ...] = ()
    """The names of the variables that were given for it; their values are in its bundle alone."""
    gated: bool = False
    """Whether it was judged before it was started: what it starts by itself is judged, too."""
    sudo: bool = False
    """Whether `sudo` in it asks holdfast for the password."""
    fingerprint: str | None = None
    """Of the request that asked for it under a key, so that the key cannot stand for another request."""

    def to_json(self) -> dict[str, Any]:
        """What it says beyond the defaults: it is written and read again with every start."""
        said = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in said.items() if name not in _USUAL or value != _USUAL[name]}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Meta:
        """The meta of a bundle or row, but for fields of a newer release. Raises TypeError where some are missing."""
        known = {key: value[key] for key in cls.__dataclass_fields__ if key in value}
        lists = {"argv": tuple(value.get("argv") or ()), "success_codes": tuple(value.get("success_codes") or (0,))}
        lists |= {name: tuple(value.get(name) or ()) for name in ("watch", "watch_regex", "given")}
        return cls(**{**known, **lists})

    @property
    def limits(self) -> dict[str, int | float]:
        """What it may use at most; empty where nothing was said."""
        said = {"memory": self.memory, "cpus": self.cpus, "pids": self.pids}
        return {name: value for name, value in said.items() if value is not None}

    @property
    def streams(self) -> tuple[str, ...]:
        return ("out", "err") if self.split else ("out",)


#: The fields of Meta that have a default.
_USUAL: dict[str, object] = {
    one.name: one.default if one.default is not MISSING else {}
    for one in fields(Meta)
    if one.default is not MISSING or one.default_factory is not MISSING
}


@dataclass(frozen=True, slots=True)
class StreamExtent:
    """How far a log reaches: what lies before `first` was dropped."""

    first: int = 0
    end: int = 0
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Leftover:
    """A descendant that outlived the command. The start time distinguishes it from a later user of the pid."""

    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class HeldProcess:
    """A held process. A change makes a new one."""

    meta: Meta
    state: State = Requested()  # noqa: RUF009 - frozen and without fields
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
    """How many restarts in a row its policy has asked for."""
    gave_up: bool = False
    """Whether the limit of them was reached."""
    readiness: Readiness | None = None
    stall: Stall | None = None
    need: InputNeed | None = None
    watching: WatchState | None = None
    progress: Progress | None = None
    cpu_seconds: float | None = None
    """What was used up to the end; of one that runs it is measured on request."""
    peak_rss: int | None = None
    group: str | None = None
    """The cgroup that all of it is in, and the one its memory is counted in: reported by the keeper, and not kept."""
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
    def is_running(self) -> bool:
        """Also while its end has been asked for: what has not died is not called dead. Also between two runs."""
        return isinstance(self.state, (Running, Stopping, Waiting))

    @property
    def is_waiting(self) -> bool:
        """Whether it is between two runs."""
        return isinstance(self.state, Waiting)

    @property
    def restart_at(self) -> float | None:
        return self.state.due if isinstance(self.state, Waiting) else None

    @property
    def is_up(self) -> bool:
        """Whether a run of it is alive now."""
        return isinstance(self.state, (Running, Stopping))

    @property
    def has_ended(self) -> bool:
        return isinstance(self.state, Ended)

    @property
    def takes_room(self) -> bool:
        """Whether it counts among the living, or soon will."""
        return not self.has_ended

    @property
    def output_closed(self) -> bool:
        """Nothing can be appended to its log any more."""
        return self.has_ended and all(stream.closed for stream in self.streams.values())

    @property
    def started_at(self) -> float | None:
        match self.state:
            case Running(at=at) | Stopping(at=at):
                return at
            case Ended(started_at=at) | Waiting(last=Ended(started_at=at)):
                return at
            case _:
                return None

    @property
    def ended_at(self) -> float | None:
        return self.state.ended_at if isinstance(self.state, Ended) else None

    @property
    def pid(self) -> int | None:
        return None if isinstance(self.state, (Requested, Waiting)) else self.state.pid

    @property
    def deadline_at(self) -> float | None:
        """Of this run; each has a deadline of its own."""
        if self.meta.deadline is None or self.is_waiting:
            return None
        return (self.started_at or self.meta.requested_at) + self.meta.deadline
