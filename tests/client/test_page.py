"""Pages of a log."""

from __future__ import annotations

from holdfast.client.link import Output
from holdfast.client.results.page import LogPage, line_end, make_page
from holdfast.wire.frames import Message


def answer(total: int, first: int = 0) -> Message:
    return {"start": 0, "end": total, "first": first, "total": total, "closed": True, "process": {"id": "p"}}


def page(
    data: bytes, start: int, total: int, *, first: int = 0, at_line_start: bool = False, at_line_end: bool = False
) -> LogPage:
    output = [Output(1, "out", start, data)] if data else []
    return make_page(answer(total, first), output, raw=False, at_line_start=at_line_start, at_line_end=at_line_end)


def test_a_whole_log_says_nothing_more() -> None:
    whole = page(b"one\ntwo\n", 0, 8)
    assert (whole.text, whole.start, whole.end, whole.omitted, whole.note) == ("one\ntwo\n", 0, 8, 0, "")


def test_a_shortened_page_says_what_is_missing_and_how_to_read_it() -> None:
    part = page(b"two\n", 104, 120, first=100)
    assert (part.dropped, part.omitted, part.next_offset) == (100, 16, 108)
    assert "first 100 bytes are no longer kept" in part.note
    assert "4 bytes before this page: read from offset 100" in part.note
    assert "12 bytes after it: read from offset 108" in part.note


def test_a_tail_begins_between_lines() -> None:
    assert page(b"\nline\n", 9, 15, at_line_start=True).start == 10
    tail = page(b"xcut\nwhole\n", 9, 20, at_line_start=True)
    assert (tail.text, tail.start) == ("whole\n", 14)


def test_a_page_ends_between_lines_and_the_next_begins_there() -> None:
    first = page(b"one\ntwo\nthr", 0, 20, at_line_end=True)
    assert (first.text, first.end, first.next_offset) == ("one\ntwo\n", 8, 8)


def test_a_line_longer_than_a_page_is_cut_between_characters() -> None:
    assert line_end("aé".encode()[:2]) == 1
    assert line_end("a😀".encode()[:4]) == 1
    assert line_end("aé".encode()) in (1, 3)
    assert line_end(b"abc") == 3
    assert line_end(b"") == 0


def test_a_gap_is_no_part_of_a_page() -> None:
    pieces = [Output(1, "out", 0, b"a\n"), Output(1, "out", 100, b"b\n")]
    gap = make_page(answer(102), pieces, raw=False, at_line_start=False, at_line_end=False)
    assert (gap.text, gap.end) == ("a\nb\n", 102)


def test_an_empty_log_is_an_empty_page() -> None:
    empty = page(b"", 0, 0)
    assert (empty.text, empty.start, empty.end, empty.total) == ("", 0, 0, 0)
