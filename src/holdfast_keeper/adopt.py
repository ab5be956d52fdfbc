"""Takeover by a new keeper: from the bundles, and from the holders that still have their descriptors."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from holdfast_keeper import bundle, log
from holdfast_keeper.connections import Descriptors, DescriptorStore
from holdfast_keeper.held_command import HeldCommand, reopen

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

#: How long a holder may take to connect and offer the descriptors that are missing.
OFFER_TIME = 3.0
#: Before the next attempt on a bundle on which the keeper failed.
_FIRST_RETRY = 0.1
_LONGEST_RETRY = 5.0
#: What is needed for the output of a terminal.
_OF_TERMINAL = ("pty", "outr", "outw")


class Unadopted(NamedTuple):
    """A bundle of the last keeper that could not be adopted yet."""

    why: str
    fds: Descriptors
    pid: int | None


def adopt_all(keeper: Keeper, inherited: DescriptorStore) -> None:
    """Adopt every command that the last keeper held. No command is started again."""
    for process_id in os.listdir(f"{keeper.dir.path}/{bundle.LIVE}"):
        fds, pid = inherited.held.pop(process_id, {}), inherited.pid_of.get(process_id)
        _adopt_or_retry(keeper, process_id, fds, pid)
    for process_id, fds in inherited.held.items():
        _let_go(keeper, process_id, fds)


def may_be_offered(command: HeldCommand) -> bool:
    """Whether it lacks a descriptor that a holder could offer."""
    if command.is_terminal and "pty" not in command.fds:
        return True  # also after the exit: on a full disk the last output waits in the terminal
    if command.exit is not None:
        return False
    return "pidfd" not in command.fds or (command.born["stdin"] and command.input is None)


def accept_offer(keeper: Keeper, process_id: str, offered: Descriptors, pid: int | None) -> None:
    """Take the descriptors that are missing from those that a holder offers, and close the others."""
    command = keeper.commands.get(process_id)
    missing = {}
    if command is not None and pid in (None, command.born["pid"]):
        wanted = _OF_TERMINAL if command.exit is not None else tuple(offered)
        missing = {name: fd for name, fd in offered.items() if name in wanted and name not in command.fds}
    for name, fd in offered.items():
        if name not in missing:
            os.close(fd)
    if command is None or not missing:
        return
    for pump in command.pumps.values():
        pump.log.close()
        keeper.quota.retire(pump.log)
    for fd in command.fds.values():
        keeper.loop.unwatch(fd)
    state = bundle.BundleState(command.born, command.stop, command.exit, None)
    keeper.deposit(process_id, missing, command.born["pid"])
    whole = HeldCommand(process_id, command.directory, state, {**command.fds, **missing}, keeper.quota)
    keeper.publish({"fact": "adopted", "id": process_id, "report": whole.report()})
    keeper.hold(whole)


def _adopt_or_retry(keeper: Keeper, process_id: str, fds: Descriptors, pid: int | None, pause: float = 0.0) -> None:
    """A bundle that cannot be adopted, as on a read-only disk, is tried again after a pause that grows."""
    try:
        _adopt(keeper, process_id, fds, pid)
    except Exception as failed:  # noqa: BLE001 - one bad bundle must not end the keeper
        if process_id not in keeper.unadopted:
            log.write_traceback(f"keeper: {process_id}")
        keeper.unadopted[process_id] = Unadopted(f"{type(failed).__name__}: {failed}", fds, pid)
        pause = retry_pause(pause)
        keeper.loop.after(pause, partial(_adopt_or_retry, keeper, process_id, fds, pid, pause))
        return
    if keeper.unadopted.pop(process_id, None) is not None and process_id in keeper.commands:
        keeper.publish({"fact": "adopted", "id": process_id, "report": keeper.commands[process_id].report()})


def _adopt(keeper: Keeper, process_id: str, fds: Descriptors, pid: int | None) -> None:
    directory = keeper.dir.live(process_id)
    if not _was_started(directory) and not bundle.restore_state(directory):
        bundle.remove(directory)
        _let_go(keeper, process_id, fds)
        return
    state = bundle.read_state(directory)
    if state is None or state.born is None:
        raise ValueError("the state file records no start")
    if pid not in (None, state.born["pid"]):  # of another run: one that never started, or the one before
        _let_go(keeper, process_id, fds)
        fds = {}
    inherited = set(fds)
    reopen(directory, state.born, fds)
    opened = {name: fd for name, fd in fds.items() if name not in inherited}
    keeper.deposit(process_id, opened, state.born["pid"])  # the anchor does not have these yet
    command = HeldCommand(process_id, directory, state, fds, keeper.quota)
    keeper.hold(command)
    keeper.stopper.resume(command)


def _let_go(keeper: Keeper, process_id: str, fds: Descriptors) -> None:
    """Close them, here and at the holders: the same id may come again with other descriptors."""
    for fd in fds.values():
        os.close(fd)
    keeper.withdraw(process_id)


def _was_started(directory: str) -> bool:
    """Whether the command of a bundle runs or has run. One that has not started yet cannot start after this."""
    bundle.void_pending(directory)
    return os.path.exists(f"{directory}/{bundle.STATE}")


def retry_pause(last: float) -> float:
    """Seconds before the next attempt on a bundle, after this pause before the last one (0: it was the first)."""
    return min(max(last * 2, _FIRST_RETRY), _LONGEST_RETRY)
