"""Taking over from a keeper that is gone: from the bundles, and from whoever still holds their descriptors."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from holdfast_keeper import bundle
from holdfast_keeper.fd_store import Descriptors, DescriptorStore
from holdfast_keeper.held_command import HeldCommand, reopen

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

#: How long a living holder may take to come back with the descriptors that we lack.
OFFER_TIME = 3.0


def adopt_all(keeper: Keeper, inherited: DescriptorStore) -> None:
    """Hold every command that a predecessor held. Nothing is started again."""
    for process_id in os.listdir(f"{keeper.dir.path}/{bundle.LIVE}"):
        fds, pid = inherited.held.pop(process_id, {}), inherited.pid_of.get(process_id)
        keeper.safely(process_id, partial(_adopt, keeper, process_id, fds, pid))
    for process_id, fds in inherited.held.items():
        _let_go(keeper, process_id, fds)


def may_be_offered(command: HeldCommand) -> bool:
    """Whether it lacks something that a living holder could still come back with."""
    if command.exit is not None:
        return False
    return (
        "pidfd" not in command.fds
        or (command.is_terminal and "pty" not in command.fds)
        or (command.born["stdin"] and command.input is None)
    )


def accept_offer(keeper: Keeper, process_id: str, offered: Descriptors, pid: int | None) -> None:
    """A living holder offers what died with our predecessors; what we have already is not needed twice."""
    command = keeper.commands.get(process_id)
    missing = {}
    if command is not None and command.exit is None and pid in (None, command.born["pid"]):
        missing = {name: fd for name, fd in offered.items() if name not in command.fds}
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


def _adopt(keeper: Keeper, process_id: str, fds: Descriptors, pid: int | None) -> None:
    directory = keeper.dir.live(process_id)
    if not _was_started(directory) and not bundle.restore_state(directory):
        bundle.remove(directory)
        _let_go(keeper, process_id, fds)
        return
    state = bundle.read_state(directory)
    if state is None or state.born is None:
        raise ValueError("a state file that says nothing")
    if pid not in (None, state.born["pid"]):  # of the next run, which came to nothing, or of the one before
        _let_go(keeper, process_id, fds)
        fds = {}
    inherited = set(fds)
    reopen(directory, state.born, fds)
    opened = {name: fd for name, fd in fds.items() if name not in inherited}
    keeper.deposit(process_id, opened, state.born["pid"])  # a new anchor has nothing yet
    command = HeldCommand(process_id, directory, state, fds, keeper.quota)
    keeper.hold(command)
    keeper.stopper.resume(command)


def _let_go(keeper: Keeper, process_id: str, fds: Descriptors) -> None:
    """Nobody needs these any more, and the same id may come again with others."""
    for fd in fds.values():
        os.close(fd)
    keeper.withdraw(process_id)


def _was_started(directory: str) -> bool:
    """Whether the command of a bundle runs or has run. One that was not let go yet never will be, after this."""
    bundle.void_pending(directory)
    return os.path.exists(f"{directory}/{bundle.STATE}")
