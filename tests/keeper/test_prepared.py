"""What the next start needs is made ahead of it, and no start depends on it. The keeper runs soon after it is woken."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
from pathlib import Path

import pytest

from holdfast_keeper import bundle
from tests.keeper.driver import ONE, TWO, KeeperPair
from tests.support import eventually

_SYS_SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}.get(os.uname().machine)
_ATTRIBUTES = struct.Struct("IIQiIQQQ")


def next_of(pair: KeeperPair) -> Path:
    return Path(pair.place, bundle.NEXT)


def prepared(pair: KeeperPair) -> Path:
    """The directory of the next start, once it is complete."""
    eventually(lambda: len(list(next_of(pair).glob("*"))) == 3 and not Path(pair.place, "live", TWO).exists())
    return next_of(pair)


def test_the_next_start_takes_what_was_made(contained: KeeperPair) -> None:
    contained.start(ONE, "true")
    made = prepared(contained).joinpath("out.fifo").stat().st_ino
    contained.start(TWO, "echo out; exit 4")
    assert contained.complete(TWO) == b"out\n" and contained.exit_of(TWO)["code"] == 4
    assert Path(contained.place, "done", TWO, "out.fifo").stat().st_ino == made


@pytest.mark.parametrize("spec", [{"pty": True}, {"split": True}, {"stdin": True}])
def test_every_kind_of_start_works_after_it(pair: KeeperPair, spec: dict[str, bool]) -> None:
    pair.start(ONE, "true")
    prepared(pair)
    pair.start(TWO, "echo out; exit 4", **spec)
    assert pair.complete(TWO).split() == [b"out"] and pair.exit_of(TWO)["code"] == 4


def test_a_start_works_where_another_program_removed_it(contained: KeeperPair) -> None:
    contained.start(ONE, "true")
    shutil.rmtree(prepared(contained))
    contained.start(TWO, "exit 4")
    assert contained.exit_of(TWO)["code"] == 4


def test_a_start_works_where_another_program_removed_its_cgroup(pair: KeeperPair) -> None:
    root = pair.hello()["cgroup"]
    if root is None:
        return  # nothing to remove on a machine without cgroups
    pair.start(ONE, "sleep 300")
    prepared(pair)

    def removed() -> int:
        count = 0
        for group in Path(root).iterdir():
            if group.is_dir() and not group.joinpath("cgroup.procs").read_text():
                group.rmdir()
                count += 1
        return count

    eventually(removed)
    pair.start(TWO, "exit 4")
    assert pair.exit_of(TWO)["code"] == 4


def test_a_new_keeper_makes_its_own(pair: KeeperPair) -> None:
    pair.start(ONE, "sleep 300")
    old = prepared(pair).stat().st_ino
    pair.kill(pair.keeper)
    assert not next_of(pair).exists() or next_of(pair).stat().st_ino != old
    pair.start(TWO, "exit 4")
    assert pair.exit_of(TWO)["code"] == 4


def test_nothing_is_left_of_it_at_the_end(pair: KeeperPair) -> None:
    root = pair.hello()["cgroup"]
    pair.start(ONE, "true")
    pair.complete(ONE)
    prepared(pair)
    pair.control.ask("leave")
    pair.control.close()
    eventually(lambda: not Path(pair.place, bundle.CONTROL).exists())
    assert not next_of(pair).exists()
    assert root is None or not os.path.exists(root)


def slice_of(pid: int) -> int:
    """Nanoseconds of processor time that it runs at a time (Linux 6.12 and newer, else 0)."""
    buffer = ctypes.create_string_buffer(_ATTRIBUTES.size)
    assert ctypes.CDLL(None).syscall(_SYS_SCHED_GETATTR, pid, buffer, _ATTRIBUTES.size, 0) == 0
    return int(_ATTRIBUTES.unpack(buffer.raw)[5])


def test_the_keeper_has_short_slices_and_its_commands_have_not(pair: KeeperPair) -> None:
    if _SYS_SCHED_GETATTR is None or not slice_of(0):
        return  # this kernel has none to choose
    command = pair.start(ONE, "sleep 300")["born"]["pid"]
    assert slice_of(pair.keeper) == 100_000
    assert slice_of(command) == slice_of(pair.anchor) > 100_000
