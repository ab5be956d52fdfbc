"""Upgrade of anchor and keeper: the anchor executes the newer release, and stays the parent of every command.

The keeper sends the command line of the new release to the anchor and exits. The anchor then executes it: its pid, its
children and its descriptors stay. A file in memory says which descriptor is what. If the anchor dies before that, the
usual takeover follows, with the old release.
"""

from __future__ import annotations

import json
import os
from typing import Any

from holdfast_keeper import failpoints, log
from holdfast_keeper.bundle import KeeperDir
from holdfast_keeper.connections import DescriptorStore

#: In `offers`: the keeper understands the request `renew`.
OFFER = "renew"
#: The last two arguments of the new release: this, and the descriptor of the file in memory.
INHERIT = "--inherit"


def execute(argv: list[str], keeper_dir: KeeperDir, store: DescriptorStore) -> None:
    """Become the new release. Returns only if it cannot be executed: then the old one goes on."""
    listeners = keeper_dir.descriptors()
    state = {
        "directory": keeper_dir.path,
        "listeners": listeners,
        "held": store.held,
        "pids": store.pid_of,
        "witnessed": store.witnessed,
    }
    fds = [*listeners.values(), *(fd for held in store.held.values() for fd in held.values())]
    try:
        file = os.memfd_create("holdfast-inherit", 0)  # inheritable
    except OSError as failed:
        log.write(f"anchor: cannot hand over to the new release: {failed}")
        return
    try:
        with open(file, "w", closefd=False) as out:
            json.dump(state, out)
        for fd in fds:
            os.set_inheritable(fd, True)
        failpoints.reach("renew-prepared")
        os.execve(argv[0], [*argv, INHERIT, str(file)], os.environ)
    except (OSError, ValueError) as failed:
        log.write(f"anchor: cannot execute the new release: {failed}")
    for fd in fds:
        os.set_inheritable(fd, False)
    os.close(file)


def inherited(file: int) -> tuple[KeeperDir, DescriptorStore]:
    """The directory and the descriptors that the anchor of the last release had."""
    with open(file, "rb") as content:
        content.seek(0)
        state: dict[str, Any] = json.load(content)
    store = DescriptorStore()
    for process_id, held in state["held"].items():
        store.hold(process_id, list(held), list(held.values()))
    for process_id, pid in state["pids"].items():
        store.pid_of[process_id] = pid
        store.by_pid[pid] = process_id
    store.witnessed = {process_id: (pid, slot) for process_id, (pid, slot) in state["witnessed"].items()}
    for fd in [*state["listeners"].values(), *(fd for held in store.held.values() for fd in held.values())]:
        os.set_inheritable(fd, False)
    failpoints.reach("renew-inherited")
    return KeeperDir(state["directory"], state["listeners"]), store
