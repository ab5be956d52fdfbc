"""A process as the daemon told of it: a picture taken at one moment, never updated."""

from __future__ import annotations

from holdfast.wire.messages import PROCESS_FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.client.found import Match
    from holdfast.wire.frames import Message


class Process:
    """One process. Every field of the process object is an attribute; what a newer daemon adds is in `to_json()`."""

    __slots__ = ("_fields", "notes", "match", "seen")

    if TYPE_CHECKING:
        id: str
        name: str | None
        command: str
        argv: list[str]
        cwd: str
        session: str
        task: str | None
        backend: str
        pid: int | None
        status: str
        reason: str | None
        exit_code: int | None
        signal: int | None
        started_at: float | None
        ended_at: float | None
        ready: bool | None
        output_bytes: int
        dropped_bytes: int
        log_cap: int
        lifetime: str
        notify: str | None
        watch: list[Any] | None
        pty: bool
        stdin_open: bool
        deadline_at: float | None
        leftover_pids: list[int]
        restarts: int | None
        ports: list[int] | None
        cpu_seconds: float | None
        rss_bytes: int | None
        labels: dict[str, str] | None
        killed_by: str | None
        forced: bool | None
        exit_offset: int | None
        stale: bool
        trouble: str | None
        ready_at: float | None
        ready_trouble: str | None
        stalled: bool
        stall_data: dict[str, Any] | None
        needs_input: dict[str, Any] | None
        watch_data: dict[str, Any] | None
        split: bool
        cols: int | None
        rows: int | None
        restart: str | None
        restart_at: float | None
        gave_up: bool | None
        limits: dict[str, float] | None
        peak_rss_bytes: int | None
        #: Everyone who belongs to it, where `inspect` was asked to tell: pid, ppid, name, cpu_seconds, rss_bytes.
        tree: list[Message] | None
    else:

        def __getattr__(self, name):
            if not name.startswith("_"):
                if name in self._fields:
                    return self._fields[name]
                if name in PROCESS_FIELDS:
                    return None
            raise AttributeError(f"a process has no {name!r}")

    def __init__(self, fields: Message, notes: tuple[str, ...] = ()) -> None:
        self._fields = fields
        #: What the daemon had to say when it started the process.
        self.notes = notes
        #: The line that was waited for.
        self.match: Match | None = None
        #: Names how it stands, for `look`; None where nobody told.
        self.seen: str | None = None

    @property
    def is_running(self) -> bool:
        return self.status != "ended"

    def to_json(self) -> Message:
        """The process object, with fields of a newer daemon."""
        return {**dict.fromkeys(PROCESS_FIELDS), **self._fields}

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"<Process {self.id}{name} {outcome(self)}: {self.command!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Process) and other._fields == self._fields

    def __hash__(self) -> int:
        return hash(self.id)

    def __reduce__(self) -> tuple[type[Process], tuple[Message, tuple[str, ...]]]:
        return Process, (self._fields, self.notes)


class KillResult:
    """What became of one process that was to end, or of a signal to it."""

    __slots__ = ("_fields", "id", "status", "reason", "forced", "survivors", "exit_code", "signal", "sent")

    def __init__(self, fields: Message) -> None:
        self._fields = fields
        self.id: str = fields["id"]
        #: `ended`, or `running` while something of it is alive.
        self.status: str = fields["status"]
        self.reason: str | None = fields.get("reason")
        #: Whether it took force; None when that was not up to us.
        self.forced: bool | None = fields.get("forced")
        #: Pids of the tree that are still alive.
        self.survivors: list[int] = fields.get("survivors") or []
        self.exit_code: int | None = fields.get("exit_code")
        self.signal: int | None = fields.get("signal")
        #: How many processes got the signal, where just a signal was asked for.
        self.sent: int | None = fields.get("sent")

    def to_json(self) -> Message:
        return self._fields

    def __repr__(self) -> str:
        return f"<KillResult {self.id} {self.status}{' by force' if self.forced else ''}>"


class Waited:
    """How a wait ended. `done` names those that it waited for with success, in the order in which they were done."""

    __slots__ = ("processes", "done", "timed_out", "waited", "clamped_to", "matches")

    def __init__(self, value: Message) -> None:
        self.processes = [Process(fields) for fields in value["processes"]]
        self.done: list[str] = value["done"]
        #: The first line that matched, of each process that wrote one; with `until="match"`.
        self.matches: dict[str, Match] = {}
        for process in self.processes:
            if (fields := value.get("matches", {}).get(process.id)) is not None:
                from holdfast.client.found import Match

                self.matches[process.id] = process.match = Match(fields)
        self.timed_out = bool(value["timed_out"])
        self.waited: float | None = value.get("waited")
        #: The longest wait that the daemon grants, where that was less than asked for.
        self.clamped_to: float | None = value.get("clamped_to")


def outcome(process: Process) -> str:
    """Where its life stands, in a word or two: `running`, `exit 3`, `SIGKILL`, `deadline, SIGTERM`, `lost`."""
    if process.status != "ended":
        return "waiting" if process.restart_at is not None and process.status == "running" else process.status
    if process.exit_code is not None:
        how = f"exit {process.exit_code}"
    elif process.signal is not None:
        from holdfast.client.signals import signal_name

        how = signal_name(process.signal)
    else:
        return process.reason or "ended"
    return how if process.reason in ("exited", "signaled", None) else f"{process.reason}, {how}"
