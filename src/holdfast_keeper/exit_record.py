"""The exit of a command: its status is learned from the kernel, recorded in the bundle, and only then reaped."""

from __future__ import annotations

import contextlib
import os
import time
from typing import NamedTuple

from holdfast_keeper import bundle, kernel, limits
from holdfast_keeper.bundle import Slot
from holdfast_keeper.held_command import HeldCommand

#: More do not fit into a slot.
_MOST_LEFTOVERS = 24
#: No spare is larger. The kernel's peak of a process outlives its exec, so a smaller peak may be that of the spare.
_SPARE_BYTES = 24 << 20


class ExitStatus(NamedTuple):
    value: int
    """As wait(2) encodes it."""
    witness: str


def learn_status(command: HeldCommand) -> ExitStatus | None:
    """The exit status of a command that has ended; None when no source knows it. Does not reap it."""
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
    """Drain the output, then record the exit. Afterwards it may be published, and the zombie reaped."""
    ends = {name: pump.drain() for name, pump in command.pumps.items()}
    members = [member for member in command.tree.members() if member != command.tree.leader]
    exit_ = _exit_slot(status, ends, [[*member] for member in members])
    command.record_exit({**exit_, **_usage(command)})


def _usage(command: HeldCommand) -> Slot:
    """Processor time and peak memory, as far as the kernel still knows, and whether it reached its memory limit."""
    paths = command.born.get("limits", {})
    used: Slot = {"cpu": kernel.group_cpu(command.born["group"]), "peak": limits.peak_bytes(paths) or _peak(command)}
    return {**used, "oom": True} if limits.oom_kills(paths) else used


def _peak(command: HeldCommand) -> int | None:
    """The peak of the largest process of the command, if that was larger than the spare it was forked as."""
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
    # WNOWAIT: it stays a zombie until the record is written, so that a successor can still learn its status.
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
