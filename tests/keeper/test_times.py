"""The index of a log, which says when output arrived: caps, crashes, a full disk, and no cost for short commands."""

from __future__ import annotations

import os
import struct
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast_keeper import bundle
from holdfast_keeper.output import Quota, Segments
from tests.keeper.driver import ONE, KeeperPair
from tests.support import eventually, fill_disk, small_disk_at

SIZE = bundle.TIME_ENTRY.size
Entries = list[tuple[int, ...]]


def index(directory: str | Path, stream: str = "out") -> Path:
    return Path(bundle.times_path(str(directory), stream))


def entries(directory: str | Path, stream: str = "out") -> Entries:
    """Every complete entry; their offsets are in order."""
    path = index(directory, stream)
    data = path.read_bytes() if path.exists() else b""
    found = list(bundle.TIME_ENTRY.iter_unpack(data[: len(data) // SIZE * SIZE]))
    assert [entry[1] for entry in found] == sorted(entry[1] for entry in found)
    return found


def of(pair: KeeperPair, stream: str = "out") -> Entries:
    return entries(bundle.find(pair.place, ONE) or "", stream)


def test_the_format_is_as_documented() -> None:
    assert bundle.TIME_ENTRY.pack(1, 2, 3, 4, 0) == struct.pack("<QQHHI", 1, 2, 3, 4, 0)
    assert SIZE == 24


def test_output_at_the_start_needs_no_index(pair: KeeperPair) -> None:
    pair.start(ONE, ["/bin/echo", "hello"])
    assert pair.complete(ONE) == b"hello\n"
    born = pair.control.ask("report", id=ONE)["born"]
    done = Path(pair.place, "done", ONE)
    if os.stat(bundle.segment_path(str(done), "out", 0)).st_mtime - born["at"] < 0.09:  # else the machine was too busy
        assert not index(done).exists()


def test_later_output_has_its_time(pair: KeeperPair) -> None:
    before = time.time()
    pair.start(ONE, "echo one; read x; echo two; read x; echo three", stdin=True)
    for shown in (b"one\n", b"one\ntwo\n"):
        eventually(lambda shown=shown: pair.output(ONE) == shown)  # type: ignore[misc]
        time.sleep(0.3)
        pair.write(ONE, b"\n")
    assert pair.complete(ONE) == b"one\ntwo\nthree\n"
    at = {offset: micros / 1e6 for micros, offset, *_ in of(pair)}
    assert before < at[4] < at[8] < time.time()
    assert at[8] - at[4] > 0.2


def test_there_is_at_most_one_entry_in_100_ms(pair: KeeperPair) -> None:
    pair.start(ONE, "for i in $(seq 100); do echo $i; sleep 0.01; done")
    pair.complete(ONE)
    times = [micros / 1e6 for micros, *_ in of(pair)]
    assert len(times) >= 5
    assert min(after - before for before, after in pairwise(times)) > 0.09


def test_both_streams_have_their_own(pair: KeeperPair) -> None:
    pair.start(ONE, "sleep 0.2; echo out; read x; echo err >&2", split=True, stdin=True)
    eventually(lambda: pair.output(ONE))
    time.sleep(0.2)
    pair.write(ONE, b"\n")
    pair.complete(ONE)
    ((first, *_),), ((second, *_),) = of(pair, "out"), of(pair, "err")
    assert second - first > 100_000


def test_a_kill_of_the_keeper_loses_no_output_and_keeps_the_order(pair: KeeperPair) -> None:
    pair.start(ONE, "for i in $(seq -w 300); do echo $i; sleep 0.01; done")
    for count in (2, 6):
        eventually(lambda count=count: len(of(pair)) >= count)  # type: ignore[misc]
        pair.kill(pair.keeper)
    output = pair.complete(ONE)
    assert output == b"".join(b"%03d\n" % number for number in range(1, 301))
    found = of(pair)
    assert len(found) > 6
    assert found[-1][1] < len(output)
    assert len({entry[1] for entry in found}) == len(found)


def test_a_torn_entry_is_overwritten_by_the_next(pair: KeeperPair) -> None:
    pair.start(ONE, "while read x; do sleep 0.2; echo $x; done", stdin=True)
    pair.write(ONE, b"one\n")
    assert eventually(lambda: pair.output(ONE)) == b"one\n"  # its entry is written before it
    before = of(pair)
    directory = bundle.find(pair.place, ONE) or ""
    with open(index(directory), "ab") as file:
        file.write(b"torn")
    pair.kill(pair.keeper)
    pair.write(ONE, b"two\n", at=4)
    after = eventually(lambda: of(pair)[len(before) :])
    assert [entry[1] for entry in after] == [4]
    assert index(directory).stat().st_size % SIZE == 0


def test_entries_beyond_a_log_that_lost_its_end_are_dropped(pair: KeeperPair) -> None:
    pair.start(ONE, "while read x; do sleep 0.2; echo $x; done", stdin=True)
    pair.write(ONE, b"one\n")
    assert eventually(lambda: pair.output(ONE)) == b"one\n"  # its entry is written before it
    before = of(pair)
    with open(index(bundle.find(pair.place, ONE) or ""), "ab") as file:
        file.write(bundle.TIME_ENTRY.pack(1, 1 << 40, 0, 0, 0))
    pair.kill(pair.keeper)
    assert eventually(lambda: of(pair) == before)
    pair.write(ONE, b"two\n", at=4)
    assert eventually(lambda: [entry[1] for entry in of(pair)][len(before) :]) == [4]


def test_a_crash_between_the_entry_and_its_output(tmp_path: Path) -> None:
    pair = KeeperPair(tmp_path, HOLDFAST_DIE_AT="time-noted", HOLDFAST_DIE_MARK=str(tmp_path / "died"))
    try:
        pair.start(ONE, "sleep 0.3; echo one; sleep 0.3; echo two")
        eventually((tmp_path / "died").exists)
        eventually(pair.reconnect)
        assert pair.complete(ONE) == b"one\ntwo\n"
        found = of(pair)
        assert {entry[1] for entry in found} == {0, 4}
    finally:
        pair.close()


def test_a_full_disk_loses_no_output(tmp_path: Path) -> None:
    with small_disk_at(tmp_path / "disk", "2m"):
        pair = KeeperPair(tmp_path / "disk")
        try:
            pair.start(ONE, "read x; sleep 0.2; head -c 300000 /dev/zero; sleep 0.3; echo end", stdin=True)
            ballast = fill_disk(tmp_path / "disk")
            pair.write(ONE, b"\n")
            pair.control.fact("disk_full", ONE)
            ballast.unlink()
            subprocess.run(["sync"], check=True)
            assert pair.complete(ONE) == bytes(300_000) + b"end\n"
            assert [entry[1] for entry in of(pair)][-1] == 300_000
        finally:
            pair.close()


def test_sizes_of_the_terminal_are_in_it(pair: KeeperPair) -> None:
    pair.start(ONE, "sleep 0.2; echo one; read x; echo two; read x", pty=True, stdin=True)
    eventually(lambda: pair.output(ONE))
    for cols in range(100, 150):
        pair.control.ask("resize", id=ONE, cols=cols, rows=40)
    pair.write(ONE, b"\n")
    eventually(lambda: b"two" in pair.output(ONE))
    pair.control.ask("resize", id=ONE, cols=80, rows=24)
    pair.write(ONE, b"\n")
    pair.complete(ONE)
    sizes = [(cols, rows) for _, _, cols, rows, _ in of(pair) if cols]
    assert sizes[0] == (100, 40)
    assert (149, 40) in sizes
    assert sizes[-1] == (80, 24)
    assert len(sizes) < 20


def test_a_command_that_runs_again_goes_on_with_it(pair: KeeperPair) -> None:
    pair.start(ONE, "sleep 0.2; echo one")
    pair.complete(ONE)
    pair.control.ask("rerun", id=ONE, run=1)
    eventually(lambda: pair.exit_of(ONE) and pair.output(ONE) == b"one\none\n")
    assert eventually(lambda: [entry[1] for entry in of(pair)] == [0, 4])


# The caps, with a clock of the test's own.


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.offset = 1_700_000_000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "time", lambda: self.now + self.offset)


def append(log: Segments, data: bytes) -> None:
    """As a pump does."""
    if log.times.is_due():
        log.note_arrival()
    while data:
        target, room = log.open_for_append()
        count = os.write(target, data[:room])
        log.appended(count)
        data = data[count:]


def used(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


@pytest.mark.parametrize("size", [1, 40, 3000])
def test_log_and_index_stay_within_the_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    clock, quota, cap = Clock(monkeypatch), Quota(None), 64 << 10
    log = Segments(str(tmp_path), "out", cap, quota, is_new=True)
    for count in range(20_000 if size < 3000 else 2_000):
        clock.now += 0.15
        append(log, bytes(size))
        if count % 97 == 0:
            assert used(tmp_path) == log.held == quota.used
            assert log.held <= cap
    found = entries(tmp_path)
    assert found[0][1] <= log.first + size
    assert found[-1][1] <= log.end
    assert len(found) * SIZE <= cap // 16
    # Older times become coarser, but are still spread over the whole log.
    gaps = [after[0] - before[0] for before, after in pairwise(found)]
    assert max(gaps) <= 5 * sorted(gaps)[len(gaps) // 2]


def test_a_flood_costs_one_entry_in_100_ms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    log = Segments(str(tmp_path), "out", 1 << 20, Quota(None), is_new=True)
    for _ in range(1000):
        clock.now += 0.001
        append(log, bytes(10_000))
    assert len(entries(tmp_path)) <= 10
    assert log.held <= 1 << 20


def test_a_clock_that_jumps_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    log = Segments(str(tmp_path), "out", 1 << 20, Quota(None), is_new=True)
    for count in range(10):
        clock.now += 0.2
        clock.offset -= 3600 if count == 5 else 0
        append(log, b"line\n")
    found = entries(tmp_path)
    assert [entry[1] for entry in found] == [5 * count for count in range(10)]
    assert found[5][0] < found[0][0]


def test_the_index_of_an_archived_log_counts_and_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, total = Clock(monkeypatch), 100_000
    quota = Quota(total)
    (tmp_path / "done").mkdir()
    (tmp_path / "live").mkdir()
    log = Segments(str(tmp_path / "done"), "out", 64 << 10, quota, is_new=True)
    for _ in range(100):
        clock.now += 0.2
        append(log, b"line\n")
    log.close()
    quota.retire(log)
    quota.archive(str(tmp_path / "done"))
    assert quota.used == used(tmp_path / "done") == 500 + 100 * SIZE
    new = Segments(str(tmp_path / "live"), "out", 1 << 20, quota, is_new=True)
    append(new, bytes(total - 1000))
    append(new, bytes(1000))
    assert used(tmp_path / "done") == 0
    assert quota.used == used(tmp_path / "live") <= total


@pytest.mark.parametrize("cap", [1, 100, 400, 1000, 8000])
def test_a_tiny_cap_is_no_trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cap: int) -> None:
    clock = Clock(monkeypatch)
    log = Segments(str(tmp_path), "out", cap, Quota(None), is_new=True)
    for _ in range(300):
        clock.now += 2
        append(log, b"a line of output\n")
    assert log.end == 300 * 17
