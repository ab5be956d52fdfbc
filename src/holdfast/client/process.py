"""Objects that describe a process: each is a snapshot of one moment, never updated."""

from __future__ import annotations

from holdfast.client.fields import PROCESS_FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from holdfast.client.field_types import KillResultAttributes, ProcessAttributes
    from holdfast.client.results.search import Match
    from holdfast.wire.frames import Message
else:
    ProcessAttributes = KillResultAttributes = object


class FieldView:
    """An object of the daemon's. Its fields are attributes; `to_json()` also has those that a newer daemon adds."""

    __slots__ = ("fields",)
    #: Values of missing fields.
    DEFAULTS: ClassVar[Message] = {}

    def __init__(self, fields: Message) -> None:
        self.fields = fields

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name != "fields" and name in self.fields:
                return self.fields[name]
            if name in self.DEFAULTS:
                return self.DEFAULTS[name]
            raise AttributeError(f"{type(self).__name__} has no {name!r}")

    def to_json(self) -> Message:
        return self.fields


class Process(ProcessAttributes):
    """One process. Every field of the process object is an attribute; what a newer daemon adds is in `to_json()`."""

    __slots__ = ("_fields", "notes", "match", "seen")

    if TYPE_CHECKING:
        #: Every process of its tree, where `inspect` was asked for it: pid, ppid, name, cpu_seconds, rss_bytes.
        tree: list[Message] | None
        #: The options it was started with, where `inspect` was asked for them.
        spec: Message | None
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
        #: What differs from the request, or is worth knowing, of a start.
        self.notes = notes
        #: The line that was waited for.
        self.match: Match | None = None
        #: Identifies this state of the process, for `look`; None when unknown.
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


class KillResult(FieldView, KillResultAttributes):
    """What became of one process that was to end, or of a signal to it. Every field is an attribute."""

    __slots__ = ()
    DEFAULTS: ClassVar[Message] = {
        **dict.fromkeys(("reason", "forced", "exit_code", "signal", "sent", "queue")),
        "survivors": [],
        "already_ended": False,
    }

    def __repr__(self) -> str:
        return f"<KillResult {self.id} {self.status}{' by force' if self.forced else ''}>"


class Waited:
    """How a wait ended. `done` has the ids of those that are done, in the order in which they were."""

    __slots__ = ("processes", "done", "timed_out", "waited", "clamped_to", "matches")

    def __init__(self, value: Message) -> None:
        self.processes = [Process(fields) for fields in value["processes"]]
        self.done: list[str] = value["done"]
        #: The first line that matched, of each process that wrote one; with `until="match"`.
        self.matches: dict[str, Match] = {}
        for process in self.processes:
            if (fields := value.get("matches", {}).get(process.id)) is not None:
                from holdfast.client.results.search import Match

                self.matches[process.id] = process.match = Match(fields)
        self.timed_out = bool(value["timed_out"])
        self.waited: float | None = value.get("waited")
        #: The daemon's limit, where it was less than the timeout.
        self.clamped_to: float | None = value.get("clamped_to")


def outcome(process: Process) -> str:
    """Its state in a word or two: `running`, `exit 3`, `SIGKILL`, `deadline, SIGTERM`, `lost`."""
    if process.status != "ended":
        return "restarting" if process.restart_at is not None and process.status == "running" else process.status
    if process.exit_code is not None:
        how = f"exit {process.exit_code}"
    elif process.signal is not None:
        from holdfast.client.signals import signal_name

        how = signal_name(process.signal)
    else:
        return process.reason or "ended"
    return how if process.reason in ("exited", "signaled", None) else f"{process.reason}, {how}"
