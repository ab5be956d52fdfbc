"""Taking over from a keeper that is gone: from the bundles, and from whoever still holds their descriptors."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from holdfast_keeper import bundle
from holdfast_keeper.depot import Descriptors, DescriptorStore
from holdfast_keeper.hold import Hold, reopen

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

#: How long a living holder may take to come back with the descriptors that we lack.
OFFER_TIME = 3.0


def adopt_everything(keeper: Keeper, inherited: DescriptorStore) -> None:
    """Hold every command that a predecessor held. Nothing is started again."""
    for process_id in os.listdir(f"{keeper.place.directory}/{bundle.LIVE}"):
        fds, pid = inherited.held.pop(process_id, {}), inherited.pid_of.get(process_id)
        keeper.safely(process_id, partial(_adopt, keeper, process_id, fds, pid))
    for process_id, fds in inherited.held.items():
        _let_go(keeper, process_id, fds)


def may_be_offered(hold: Hold) -> bool:
    """Whether it lacks something that a living holder could still come back with."""
    if hold.exit is not None:
        return False
    return (
        "pidfd" not in hold.fds
        or (hold.is_terminal and "pty" not in hold.fds)
        or (hold.born["stdin"] and hold.input is None)
    )


def take_back(keeper: Keeper, process_id: str, offered: Descriptors, pid: int | None) -> None:
    """A living holder offers what died with our predecessors; what we have already is not needed twice."""
    hold = keeper.holds.get(process_id)
    missing = {}
    if hold is not None and hold.exit is None and pid in (None, hold.born["pid"]):
        missing = {name: fd for name, fd in offered.items() if name not in hold.fds}
    for name, fd in offered.items():
        if name not in missing:
            os.close(fd)
    if hold is None or not missing:
        return
    for pump in hold.pumps.values():
        pump.log.close()
        keeper.quota.retire(pump.log)
    for fd in hold.fds.values():
        keeper.loop.unwatch(fd)
    state = bundle.BundleState(hold.born, hold.stop, hold.exit, None)
    keeper.deposit(process_id, missing, hold.born["pid"])
    whole = Hold(process_id, hold.directory, state, {**hold.fds, **missing}, keeper.quota)
    keeper.tell({"fact": "adopted", "id": process_id, "report": whole.report()})
    keeper.hold(whole)


def _adopt(keeper: Keeper, process_id: str, fds: Descriptors, pid: int | None) -> None:
    directory = keeper.place.live(process_id)
    if not _was_let_go(directory) and not bundle.bring_back_state(directory):
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
    hold = Hold(process_id, directory, state, fds, keeper.quota)
    keeper.hold(hold)
    keeper.stopper.resume(hold)


def _let_go(keeper: Keeper, process_id: str, fds: Descriptors) -> None:
    """Nobody needs these any more, and the same id may come again with others."""
    for fd in fds.values():
        os.close(fd)
    keeper.withdraw(process_id)


def _was_let_go(directory: str) -> bool:
    """Whether the command of a bundle runs or has run. One that was not let go yet never will be, after this."""
    bundle.void_pending(directory)
    return os.path.exists(f"{directory}/{bundle.STATE}")
