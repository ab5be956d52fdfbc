"""The next run of a command, in its bundle: the log continues, the state is new.

At every moment the bundle records either the last run or the claimed next one. The old state is set aside, not
overwritten, and is restored when the next run never starts.
"""

from __future__ import annotations

import json
import os

from holdfast_keeper import bundle, failpoints
from holdfast_keeper.keeper_dir import KeeperDir
from holdfast_keeper.launch import Launch, Nest, Spec


class Relaunch(Launch):
    """`born` is added to the record of the start: `run`, `streak`, `begins`."""

    def __init__(self, process_id: str, keeper_dir: KeeperDir, spec: Spec, nest: Nest, born: bundle.Slot) -> None:
        super().__init__(process_id, keeper_dir.live(process_id), spec, nest)
        self._done_directory = keeper_dir.done(process_id)
        self._also_born = born
        self._pending = bundle.pending(nest.pid)

    def give_up(self) -> None:
        """Put the bundle back as the last run left it."""
        self._close()
        if os.path.isdir(self.directory):
            bundle.void_pending(self.directory)
            if not os.path.exists(f"{self.directory}/{bundle.STATE}"):
                bundle.restore_state(self.directory)
            os.rename(self.directory, self._done_directory)
        bundle.remove(self._nest.directory)

    def _move_in(self) -> None:
        if not os.path.isdir(self.directory):
            os.rename(self._done_directory, self.directory)
        failpoints.reach("rerun-moved")
        bundle.set_state_aside(self.directory, self._also_born["run"] - 1)
        failpoints.reach("rerun-state-aside")
        for name in (bundle.FIFO["out"], self._pending):
            os.rename(f"{self._nest.directory}/{name}", f"{self.directory}/{name}")
        failpoints.reach("rerun-files-moved")

    def _write_spec(self, spec: Spec) -> None:
        """The spec stays the same, except for the cgroups that limit it: each run has new ones."""
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
        """Rename it over the old one, so that there always is one: a new keeper opens it by name."""
        path = f"{self.directory}/{name}"
        bundle.unlink(f"{path}.new")
        os.mkfifo(f"{path}.new", 0o600)
        os.rename(f"{path}.new", path)
        return path
