"""The same command once more, in the bundle that it has: its log goes on, its state begins anew.

At every instant the bundle tells of a run that is over or of the one that was claimed. Its old state is put aside,
never overwritten, and comes back when the next run is never let go.
"""

from __future__ import annotations

import json
import os

from holdfast_keeper import bundle, failpoints
from holdfast_keeper.keeper_dir import KeeperDir
from holdfast_keeper.launch import Launch, Nest, Spec


class Relaunch(Launch):
    """`born` says which run it is, and whatever else whoever asked for it wants to be told again."""

    def __init__(self, process_id: str, keeper_dir: KeeperDir, spec: Spec, nest: Nest, born: bundle.Slot) -> None:
        super().__init__(process_id, keeper_dir.live(process_id), spec, nest)
        self._at_rest = keeper_dir.done(process_id)
        self._also_born = born
        self._pending = bundle.pending(nest.pid)

    def give_up(self) -> None:
        """The bundle is as it was before: of a run that is over."""
        self._close()
        if os.path.isdir(self.directory):
            bundle.void_pending(self.directory)
            if not os.path.exists(f"{self.directory}/{bundle.STATE}"):
                bundle.restore_state(self.directory)
            os.rename(self.directory, self._at_rest)
        bundle.remove(self._nest.directory)

    def _move_in(self) -> None:
        if not os.path.isdir(self.directory):
            os.rename(self._at_rest, self.directory)
        failpoints.reach("rerun-moved")
        bundle.set_state_aside(self.directory, self._also_born["run"] - 1)
        failpoints.reach("rerun-state-aside")
        for name in (bundle.FIFO["out"], self._pending):
            os.rename(f"{self._nest.directory}/{name}", f"{self.directory}/{name}")
        failpoints.reach("rerun-files-moved")

    def _write_spec(self, spec: Spec) -> None:
        """It is what it was, but for the groups: those that limit it are made anew for each run."""
        bundle.remove(self._nest.directory)
        if spec["join"] == self.spec.get("join", []):
            return
        path = f"{self.directory}/{bundle.SPEC}"
        bundle.unlink(f"{path}.new")
        fd = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "w") as file:
            json.dump(spec, file)
        os.rename(f"{path}.new", path)

    def _make_fifo(self, name: str) -> str:
        """Over the old one: at no time is there none, for a successor of ours opens it by its name."""
        path = f"{self.directory}/{name}"
        bundle.unlink(f"{path}.new")
        os.mkfifo(f"{path}.new", 0o600)
        os.rename(f"{path}.new", path)
        return path
