"""Marks are on disk before anything is done, and stay few."""

from __future__ import annotations

from pathlib import Path

from holdfast.screen import marks
from holdfast.screen.marks import ResizeMark


def test_what_was_marked_is_read_again(tmp_path: Path) -> None:
    path = str(tmp_path / "marks")
    written = marks.begin(path, 80, 24)
    written.resize(100, 90, 30)
    written.handle(50)
    written.handle(40)
    written.attach(60)
    written.reply(7, 6)
    read = marks.load(path)
    assert read is not None
    assert read.resizes == [ResizeMark(0, 80, 24), ResizeMark(100, 90, 30)]
    assert (read.handled, read.attached) == (50, 60)
    assert read.replies == {7: 6}
    read.attach(None)
    again = marks.load(path)
    assert again is not None and again.attached is None
    assert (tmp_path / "marks").stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_off_or_spoilt_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "marks"
    marks.begin(str(path), 80, 24).handle(7)
    path.write_bytes(path.read_bytes() + b'[1]\n{"size": "x"}\n\xff\n{"handled": 9')
    read = marks.load(str(path))
    assert read is not None and read.handled == 7 and len(read.resizes) == 1


def test_none_are_known_of_what_was_never_marked(tmp_path: Path) -> None:
    assert marks.load(str(tmp_path / "marks")) is None


def test_they_do_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "marks"
    written = marks.begin(str(path), 80, 24)
    for n in range(5000):
        written.handle(n)
        written.resize(n, 80, 24 + n % 2)
        written.reply(n, 1)
    assert path.read_bytes().count(b"\n") <= 2001
    read = marks.load(str(path))
    assert read is not None
    assert read.handled == 4999 and read.resizes[-1] == ResizeMark(4999, 80, 25)
