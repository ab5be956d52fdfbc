"""Logs are bounded, their offsets are stable, and a full disk loses nothing."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast_keeper import bundle
from tests.keeper.driver import ONE, KeeperPair, named
from tests.support import eventually, fill_disk, small_disk_at

MIB = 1 << 20


def on_disk(place: str) -> int:
    total = 0
    for directory, _, names in os.walk(place):
        for name in names:
            if re.fullmatch(r"(out|err)\.\d+", name):
                try:
                    total += os.stat(f"{directory}/{name}").st_size
                except FileNotFoundError:
                    continue
    return total


def numbered(first: int, end: int) -> bytes:
    """The numbered lines below between two offsets; each line has 8 bytes."""
    lines = b"".join(b"%07d\n" % number for number in range(first // 8, end // 8 + 1))
    return lines[first % 8 :][: end - first]


def test_the_newest_bytes_are_kept_and_offsets_never_change(pair: KeeperPair) -> None:
    pair.start(ONE, "seq -f %07.0f 0 999999", log_cap=MIB)
    kept = pair.complete(ONE)
    (first, *_) = bundle.segments(f"{pair.place}/done/{ONE}", "out")
    assert MIB * 3 // 4 <= len(kept) <= MIB
    assert first.start + len(kept) == 8_000_000
    assert kept == numbered(first.start, 8_000_000)


def test_the_cap_holds_at_every_moment_and_through_a_crash(pair: KeeperPair) -> None:
    pair.start(ONE, "yes", log_cap=MIB)
    largest = 0
    for _ in range(3):
        for _ in range(50):
            largest = max(largest, on_disk(pair.place))
        pair.kill(pair.keeper)
    before = pair.control.ask("report", id=ONE)["streams"]["out"]
    assert eventually(lambda: pair.control.ask("report", id=ONE)["streams"]["out"]["first"] > before["end"])
    assert 0 < largest <= MIB
    pair.stop(ONE)


def test_all_logs_together_stay_within_the_quota(pair: KeeperPair) -> None:
    pair.hello(log_total=2 * MIB)
    for count in range(4):
        pair.start(named(count), "head -c 1M /dev/zero; echo end")
        pair.complete(named(count))
        assert on_disk(pair.place) <= 2 * MIB
    assert pair.output(named(3))[-4:] == b"end\n"
    oldest = pair.control.ask("report", id=named(0))["streams"]["out"]
    assert oldest["first"] == oldest["end"] == MIB + 4


def has_written(pair: KeeperPair, process_id: str, end: int) -> bool:
    return bool(pair.control.ask("report", id=process_id)["streams"]["out"]["end"] > end)


def test_the_quota_holds_for_running_commands(pair: KeeperPair) -> None:
    pair.hello(log_total=MIB)
    for count in range(4):
        pair.start(named(count), "yes")
    ends = [pair.control.ask("report", id=named(count))["streams"]["out"]["end"] for count in range(4)]
    for count in range(4):
        eventually(partial(has_written, pair, named(count), ends[count] + 4 * MIB))
        assert on_disk(pair.place) <= MIB
    for count in range(4):
        pair.stop(named(count), grace=1)


def test_a_wait_for_output_is_answered_when_there_is_some(pair: KeeperPair) -> None:
    pair.start(ONE, "read x; echo $x; read x", stdin=True)
    waiting = pair.control.begin("wait_output", id=ONE, stream="out", after=0)
    pair.write(ONE, b"hello\n")
    assert pair.control.answer(waiting) == {"end": 6, "closed": False}
    waiting = pair.control.begin("wait_output", id=ONE, stream="out", after=6)
    pair.write(ONE, b"\n")
    assert pair.control.answer(waiting) == {"end": 6, "closed": True}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    with small_disk_at(tmp_path / "disk", "2m"):
        yield tmp_path / "disk"


@pytest.mark.parametrize("pty", [False, True])
def test_a_full_disk_loses_nothing_and_is_published(small_disk: Path, pty: bool) -> None:
    pair = KeeperPair(small_disk)
    try:
        ballast = small_disk / "ballast"
        command = "stty -onlcr 2>/dev/null; seq -f %07.0f 0 199999; exit 6"
        ballast.write_bytes(bytes(MIB * 3 // 2))
        pair.start(ONE, command, pty=pty)
        assert pair.control.fact("disk_full", ONE)["stream"] == "out"
        assert pair.control.ask("report", id=ONE)["trouble"] == "disk_full"
        pair.kill(pair.keeper)
        subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
        assert pair.complete(ONE) == numbered(0, 1_600_000)
        assert pair.exit_of(ONE)["code"] == 6
        assert pair.control.ask("report", id=ONE)["trouble"] is None
    finally:
        pair.close()


def test_an_exit_is_recorded_on_a_full_disk(small_disk: Path) -> None:
    pair = KeeperPair(small_disk)
    try:
        pair.start(ONE, "read x; exit 8", stdin=True)
        fill_disk(small_disk)
        pair.write(ONE, b"\n")
        assert pair.exit_of(ONE)["code"] == 8
    finally:
        pair.close()
