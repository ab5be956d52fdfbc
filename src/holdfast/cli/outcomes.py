"""The end of a process as an exit code, as a colour, and as a line of text."""

from __future__ import annotations

from holdfast.cli import colours
from holdfast.client.process import outcome
from holdfast.model.units import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.process import Process

TIMED_OUT = 124
UNKNOWN = 120
FAILED = 125


def exit_status(process: Process) -> int:
    """The exit code for it: that of the command, 128 + signal, 120 if it is unknown, 124 if it still runs, 125 if it
    was never started.
    """
    if process.status != "ended":
        return TIMED_OUT
    if process.exit_code is not None:
        return process.exit_code
    if process.signal is not None:
        return 128 + process.signal
    return FAILED if process.started_at is None and process.reason != "lost" else UNKNOWN


def colour(process: Process) -> str:
    """The colour of its status: green runs, grey succeeded, red failed, yellow was ended or has a problem."""
    if process.status == "running":
        return colours.YELLOW if _marks(process) else colours.GREEN
    if process.status != "ended" or process.reason in ("lost", "killed", "skipped"):
        return colours.YELLOW
    return colours.DIM if process.exit_code == 0 else colours.RED


def state_text(process: Process) -> str:
    """`running`, `stalled`, `asks`, `exit 3`, `gave up, exit 3`, …: its state, or how it ended."""
    how = outcome(process)
    if process.status == "ended":
        return f"gave up, {how}" if process.gave_up else how
    marks = _marks(process)
    return ", ".join(marks if how == "running" and marks else [how, *marks])


def _marks(process: Process) -> list[str]:
    """What is special about a running process: it waits for input, is stalled, has a problem, or is old."""
    marks = {
        "asks": process.needs_input,
        "stalled": process.stalled,
        "trouble": process.trouble,
        "stale": process.stale,
    }
    return [mark for mark, is_set in marks.items() if is_set]


def begun_at(process: Process) -> float | None:
    """When it was started the first time: a restart does not make it younger."""
    return process.created_at if process.restarts and process.created_at is not None else process.started_at


def ready_status(process: Process) -> int:
    """The exit code of a wait until it is ready: 0 only if it is ready."""
    return 0 if process.ready else exit_status(process) or FAILED


def title(process: Process) -> str:
    return f"{process.id} ({process.name})" if process.name else process.id


def end_line(process: Process) -> str:
    """`proc_… (web): exit 3 after 2m03s`."""
    took = ""
    if process.started_at is not None and process.ended_at is not None:
        took = f" after {duration_text(process.ended_at - process.started_at)}"
    left = f"; still alive: {_numbers(process.leftover_pids)}" if process.leftover_pids else ""
    return f"{title(process)}: {outcome(process)}{took}{left}"


def _numbers(pids: list[int]) -> str:
    shown = ", ".join(map(str, pids[:10]))
    return f"pid {shown}{' …' if len(pids) > 10 else ''}"
