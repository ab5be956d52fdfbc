"""Cgroups of instances that were killed: the next keeper removes them, and none in which a process lives."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.keeper.driver import ONE, TWO, KeeperPair
from tests.support import eventually, is_alive


def directory_of(pair: KeeperPair) -> Path:
    root = pair.hello()["cgroup"]
    if root is None:
        pytest.skip("no cgroups can be created here")
    return Path(root)


def made(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.is_dir()]


def age(root: Path) -> None:
    for path in (root, *made(root)):
        os.utime(path, (0, 0))


def test_cgroups_of_a_killed_instance_are_removed_by_another_keeper(tmp_path: Path) -> None:
    killed = KeeperPair(tmp_path / "killed")
    root = directory_of(killed)
    killed.start(ONE, "sleep 1000")
    killed.close()
    assert made(root)
    age(root)
    other = KeeperPair(tmp_path / "other")
    try:
        eventually(lambda: not root.exists(), timeout=30)
    finally:
        other.close()


def test_cgroups_with_a_living_keeper_or_process_stay(tmp_path: Path) -> None:
    living, orphaned = KeeperPair(tmp_path / "living"), KeeperPair(tmp_path / "orphaned")
    try:
        group = Path(orphaned.start(TWO, "sleep 1000")["born"]["group"])
        pid = int(group.joinpath("cgroup.procs").read_text().split()[0])
        living.start(ONE, "sleep 1000")
        before = set(made(directory_of(living)))
        assert before
        group.parent.joinpath("1-1-empty").mkdir()
        for killed in (orphaned.anchor, orphaned.keeper):
            os.kill(killed, signal.SIGSTOP)
        for killed in (orphaned.anchor, orphaned.keeper):
            os.kill(killed, signal.SIGKILL)
        eventually(lambda: not is_alive(orphaned.keeper))
        for root in (group.parent, directory_of(living)):
            age(root)
        other = KeeperPair(tmp_path / "other")
        eventually(lambda: set(made(group.parent)) == {group}, timeout=30)  # the empty ones were removed
        assert is_alive(pid)
        assert set(made(directory_of(living))) >= before
        other.close()
    finally:
        living.close()
        orphaned.close()
