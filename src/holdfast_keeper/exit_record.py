"""How a command ended: what the kernel says, from whoever is still a witness."""

from __future__ import annotations

import contextlib
import os
import time
from typing import NamedTuple

from holdfast_keeper import bundle, kernel, limits
from holdfast_keeper.bundle import Slot
from holdfast_keeper.held_command import HeldCommand

#: Enough for anyone to read; a slot has room for no more.
_MOST_LEFTOVERS = 24
#: No spare is larger. The kernel's mark of the most memory outlives the exec, so less than this says nothing.
_SPARE_BYTES = 24 << 20


class ExitStatus(NamedTuple):
    value: int
    """As wait(2) encodes it."""
    witness: str


def learn_status(command: HeldCommand) -> ExitStatus | None:
    """The exit status of a command that has ended, as long as anybody knows it yet. Does not reap it."""
    pidfd = command.fds.get("pidfd")
    if pidfd is not None:
        seen = _as_parent(pidfd) or _as_reaped(pidfd) or _as_zombie(command)
        if seen is not None:
            return seen
    state = bundle.read_state(command.directory)
    if state is not None and state.witness is not None:
        return ExitStatus(int(state.witness["status"]), "anchor")
    return None


def record(command: HeldCommand, status: ExitStatus | None) -> None:
    """Drain, then record the exit. Afterwards it may be told to others, and the zombie may go."""
    ends = {name: pump.drain() for name, pump in command.pumps.items()}
    members = [member for member in command.tree.members() if member != command.tree.leader]
    exit_ = _exit_slot(status, ends, [[*member] for member in members])
    command.record_exit({**exit_, **_usage(command)})


def _usage(command: HeldCommand) -> Slot:
    """What it used up, as far as the kernel still knows, and whether its memory limit ended it."""
    paths = command.born.get("limits", {})
    used: Slot = {"cpu": kernel.group_cpu(command.born["group"]), "peak": limits.peak_bytes(paths) or _peak(command)}
    return {**used, "oom": True} if limits.oom_kills(paths) else used


def _peak(command: HeldCommand) -> int | None:
    """The largest process of the command, if it was larger than the spare that it was born as."""
    pidfd = command.fds.get("pidfd")
    peak = kernel.peak_of_dead(pidfd) if pidfd is not None else None
    return peak if peak is not None and peak > _SPARE_BYTES else None


def reap(command: HeldCommand) -> None:
    pidfd = command.fds.get("pidfd")
    if pidfd is not None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)


def _exit_slot(status: ExitStatus | None, ends: dict[str, int], leftovers: list[list[int]]) -> Slot:
    code = signal = None
    if status is not None:
        if os.WIFSIGNALED(status.value):
            signal = os.WTERMSIG(status.value)
        else:
            code = os.WEXITSTATUS(status.value)
    return {
        "status": None if status is None else status.value,
        "code": code,
        "signal": signal,
        "witness": None if status is None else status.witness,
        "at": time.time(),
        "ends": ends,
        "leftovers": leftovers[:_MOST_LEFTOVERS],
        "leftover_count": len(leftovers),
    }


def _as_parent(pidfd: int) -> ExitStatus | None:
    # WNOWAIT: it stays a zombie, and others can still learn its status, until the record is written.
    try:
        seen = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    if seen is None:
        return None
    if seen.si_code == os.CLD_EXITED:
        return ExitStatus(seen.si_status << 8, "parent")
    return ExitStatus(seen.si_status | (0x80 if seen.si_code == os.CLD_DUMPED else 0), "parent")


def _as_zombie(command: HeldCommand) -> ExitStatus | None:
    found = kernel.stat(command.born["pid"])
    if found is None or found.start != command.born["start"] or not found.is_dead or not kernel.is_ours(found.pid):
        return None
    return ExitStatus(found.exit_status, "proc")


def _as_reaped(pidfd: int) -> ExitStatus | None:
    value = kernel.reaped_status(pidfd)
    return None if value is None else ExitStatus(value, "pidfd")
