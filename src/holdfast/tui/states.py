"""The ten states of a process, as icon, word and colour. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.client.process import Process
from holdfast.client.signals import signal_name
from holdfast.model.units import age_text


class ProcessState(NamedTuple):
    """`key` is one of the ten; `word` may say it more exactly. `colour` is a name in `paint`."""

    key: str
    icon: str
    word: str
    colour: str

    @property
    def label(self) -> str:
        return f"{self.icon} {self.word}"


_ICONS = {
    "running": ("●", "good"),
    "starting": ("◐", "accent"),
    "exited": ("✓", "dim"),
    "failed": ("✗", "bad"),
    "killed": ("■", "dim"),
    "waiting": ("⏸", "accent"),
    "needs input": ("?", "warn"),
    "stalled": ("⚠", "warn"),
    "unreachable": ("⇄", "warn"),
    "lost": ("∅", "bad"),
}
#: States that need the user.
NEEDS_USER = frozenset({"needs input", "stalled", "unreachable"})
#: A failure is worth a look for this long.
RECENT = 1800.0


def _state(key: str, word: str | None = None) -> ProcessState:
    icon, colour = _ICONS[key]
    return ProcessState(key, icon, word or key, colour)


def state_of(process: Process) -> ProcessState:
    """The state to show."""
    status = process.status
    if status == "ended":
        return _ended(process)
    if status == "unreachable":
        return _state("unreachable")
    if status == "waiting":
        return _state("waiting")
    if status == "restarting" or process.restart_at is not None:
        return _state("starting", "restarting")
    if process.needs_input:
        return _state("needs input")
    if process.stalled:
        return _state("stalled")
    if process.started_at is None or (process.ready is False and not process.ready_trouble):
        return _state("starting")
    return _state("running")


def _ended(process: Process) -> ProcessState:
    reason = process.reason
    if reason == "lost":
        return _state("lost")
    if reason in ("killed", "skipped"):
        return _state("killed", reason)
    if reason in ("deadline", "oom"):
        return _state("failed", {"deadline": "deadline", "oom": "no memory"}[reason])
    if process.exit_code is not None:
        code = process.exit_code
        is_good = code == 0 and not process.gave_up
        return _state("exited", "exited 0") if is_good else _state("failed", f"exit {code}")
    if process.signal is not None:
        return _state("failed", signal_name(process.signal))
    return _state("failed", "not started" if reason == "failed_start" else "ended")


def note_of(process: Process, now: float) -> str:
    """What else matters of a process, in a few words."""
    if process.status == "ended":
        return "gave up" if process.gave_up else ""
    if process.needs_input:
        return '"' + str(process.needs_input.get("prompt") or "").strip()[-40:] + '"'
    if process.stalled:
        since = (process.stall_data or {}).get("last_output_at") or (process.stall_data or {}).get("since")
        return f"no output {age_text(now - since)}" if isinstance(since, (int, float)) else "no output"
    if process.restart_at is not None:
        return f"restart in {age_text(max(0.0, process.restart_at - now))}"
    if process.trouble:
        return str(process.trouble)
    if process.queue and process.status == "waiting":
        return f"queue {process.queue}"
    ports = " ".join(f":{port}" for port in (process.ports or [])[:3])
    ready = "ready" if process.ready else "not ready" if process.ready_trouble else ""
    return f"{ready} {ports}".strip()


def age_of(process: Process, now: float) -> str:
    """How long it has run; of an ended one, how long ago it ended."""
    if process.status == "ended":
        return f"{_coarse(now - process.ended_at)} ago" if process.ended_at is not None else ""
    begun = process.created_at if process.restarts and process.created_at is not None else process.started_at
    return age_text(now - begun) if begun is not None else ""


def _coarse(seconds: float) -> str:
    """One unit is enough for what is over."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def is_recent_failure(process: Process, now: float) -> bool:
    """Whether it failed lately: it, or its session, is marked for that."""
    if process.status != "ended" or now - (process.ended_at or 0.0) > RECENT:
        return False
    return state_of(process).key in ("failed", "lost")
