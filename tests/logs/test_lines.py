"""Lines: the tail, and pages that put together give the log."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.logs.lines import skip_lines, tail_start
from tests.logs.written import Written, read_all

TEXTS = st.lists(st.sampled_from([b"\n", b"a", b"bc\n", b"\r", b"long" * 20]), max_size=60).map(b"".join)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path, size=10)


@pytest.mark.parametrize(
    ("content", "lines", "tail"),
    [
        (b"1\n2\n3\n", 1, b"3\n"),
        (b"1\n2\n3\n", 2, b"2\n3\n"),
        (b"1\n2\n3\n", 99, b"1\n2\n3\n"),
        (b"1\n2\n3", 1, b"3"),
        (b"1\n2\n3", 2, b"2\n3"),
        (b"\n\n\n", 2, b"\n\n"),
        (b"no newline at all", 3, b"no newline at all"),
        (b"1\n2\n", 0, b""),
        (b"", 5, b""),
    ],
)
def test_the_tail_begins_on_a_line(written: Written, content: bytes, lines: int, tail: bytes) -> None:
    written.append(content)
    with written.log() as log:
        assert read_all(log, tail_start(log, lines)) == tail


def test_a_line_that_lost_its_head_is_left_out_of_the_tail(written: Written) -> None:
    written.append(b"a long first line\nsecond\nthird\n")
    written.drop_head(1)
    with written.log() as log:
        assert read_all(log, tail_start(log, 99)) == b"second\nthird\n"


def test_a_line_that_lost_its_head_is_shown_when_it_is_the_only_one(written: Written) -> None:
    written.append(b"x" * 45)
    written.drop_head(2)
    with written.log() as log:
        assert read_all(log, tail_start(log, 1)) == b"x" * 25


def test_pages_begin_with_the_first_retained_byte(written: Written) -> None:
    written.append(b"a long first line\nsecond\nthird\n")
    written.drop_head(1)
    with written.log() as log:
        first = log.extent().first
        second = skip_lines(log, first, 1)
        assert read_all(log, second) == b"second\nthird\n"
        assert skip_lines(log, first, 0) == first


@settings(max_examples=40)
@given(content=TEXTS, page=st.integers(1, 7), size=st.integers(3, 50))
def test_pages_put_together_give_the_log(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, page: int, size: int
) -> None:
    written = Written(tmp_path_factory.mktemp("place"), size)
    written.append(content)
    pages = []
    with written.log() as log:
        for number in range(1000):
            start = skip_lines(log, 0, number * page)
            end = skip_lines(log, start, page)
            if start == end:
                break
            pages.append(content[start:end])
    assert b"".join(pages) == content
    assert all(one.count(b"\n") == page for one in pages[:-1])


@settings(max_examples=40)
@given(content=TEXTS, lines=st.integers(0, 20), size=st.integers(3, 50))
def test_the_tail_has_the_lines_that_python_finds(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, lines: int, size: int
) -> None:
    written = Written(tmp_path_factory.mktemp("place"), size)
    written.append(content)
    pieces = [piece + b"\n" for piece in content.split(b"\n")]
    pieces[-1] = pieces[-1][:-1]
    if not pieces[-1]:
        pieces.pop()
    expected = b"".join(pieces[len(pieces) - min(lines, len(pieces)) :])
    with written.log() as log:
        assert read_all(log, tail_start(log, lines)) == expected


def test_long_logs_with_long_lines_are_counted_in_one_pass(tmp_path: Path) -> None:
    written = Written(tmp_path, size=1 << 20)
    written.append(b"".join(b"%d " % number + b"x" * 300_000 + b"\n" for number in range(20)))
    with written.log() as log:
        assert log.read(tail_start(log, 3), 3).data == b"17 "
        assert log.read(skip_lines(log, 0, 15), 3).data == b"15 "
