"""Reading by offset while files are appended, dropped and moved."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.logs.reader import CHUNK, Extent, Log
from holdfast_keeper import bundle
from tests.logs.written import ID, Written, read_all


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path, size=10)


def test_a_log_is_read_across_its_segments(written: Written) -> None:
    written.append(bytes(range(35)))
    with written.log() as log:
        assert log.extent() == Extent(0, 35)
        assert read_all(log) == written.content
        assert read_all(log, 17) == written.content[17:]


def test_reading_continues_when_the_log_grows(written: Written) -> None:
    written.append(b"0123456789")
    with written.log() as log:
        assert log.read(10) == (10, b"")
        written.append(b"abc")
        assert log.read(10) == (10, b"abc")
        assert log.read(99) == (99, b"")


def test_what_was_dropped_is_skipped_and_that_shows_in_the_offset(written: Written) -> None:
    written.append(bytes(range(35)))
    written.drop_head(2)
    with written.log() as log:
        assert log.extent() == Extent(20, 35)
        assert log.read(3) == (20, bytes(range(20, 30)))


def test_a_head_that_is_dropped_while_we_read_is_skipped(written: Written) -> None:
    written.append(bytes(range(50)))
    with written.log() as log:
        assert log.read(0, 5).data == bytes(range(5))
        written.drop_head(3)
        assert log.read(5).data == bytes(range(5, 10)), "an open segment can be read to its end"
        assert log.read(10) == (30, bytes(range(30, 40)))


def test_a_bundle_that_is_moved_while_we_read_is_read_on(written: Written) -> None:
    written.append(bytes(range(25)))
    with written.log() as log:
        assert log.read(0, 5).data == bytes(range(5))
        written.finish()
        assert read_all(log, 5) == bytes(range(5, 25))


def test_a_bundle_that_is_removed_while_we_read_ends(written: Written) -> None:
    written.append(bytes(range(25)))
    with written.log() as log:
        for found in bundle.segments(str(written.directory), "out"):
            Path(found.path).unlink()
        written.directory.rmdir()
        assert read_all(log) == b""


def test_a_process_without_a_bundle_has_an_empty_log(tmp_path: Path) -> None:
    with Log(str(tmp_path), ID, "out") as log:
        assert log.extent() == Extent(0, 0)
        assert log.read(0) == (0, b"")


def test_a_hole_left_by_a_crash_of_the_machine_is_skipped(written: Written) -> None:
    written.append(bytes(range(30)))
    second = bundle.segment_path(str(written.directory), "out", 10)
    Path(second).write_bytes(bytes(range(10, 14)))
    with written.log() as log:
        assert log.read(12) == (12, bytes([12, 13]))
        assert log.read(14) == (20, bytes(range(20, 30)))


def test_cached_bytes_are_read_without_waiting(written: Written) -> None:
    written.append(b"0123456")
    with written.log() as log:
        assert log.read_nowait(0) is None, "nothing is open yet"
        log.read(0, 1)
        assert log.read_nowait(1) == (1, b"123456")
        assert log.read_nowait(7) is None
        written.append(b"7")
        assert log.read_nowait(7) == (7, b"7")


def test_the_file_of_new_bytes_is_opened_without_waiting(written: Written) -> None:
    with written.log() as log:
        assert log.read_nowait(0, is_new=True) is None, "nothing was written"
        written.append(b"0123456")
        assert log.read_nowait(2, 3, is_new=True) == (2, b"234")
        written.append(bytes(20))
        assert log.read_nowait(7, is_new=True) == (7, bytes(3)), "up to the end of the segment"
        assert log.read(10) == (10, bytes(10))


def test_one_read_is_never_larger_than_a_chunk(tmp_path: Path) -> None:
    written = Written(tmp_path, size=4 * CHUNK)
    written.append(b"x" * (2 * CHUNK))
    with written.log() as log:
        assert len(log.read(0, 1 << 40).data) == CHUNK


def test_nothing_stays_open(written: Written) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    written.append(bytes(range(25)))
    for _ in range(10):
        with written.log() as log:
            read_all(log)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@settings(max_examples=40)
@given(data=st.binary(max_size=300), size=st.integers(1, 40), cuts=st.lists(st.integers(1, 60), min_size=1))
def test_any_segments_read_in_any_pieces_give_the_log(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, size: int, cuts: list[int]
) -> None:
    written = Written(tmp_path_factory.mktemp("place"), size)
    written.append(data)
    got = b""
    with written.log() as log:
        for number in range(10_000):
            chunk = log.read(len(got), cuts[number % len(cuts)])
            if not chunk.data:
                break
            assert chunk.offset == len(got)
            got += chunk.data
    assert got == data
