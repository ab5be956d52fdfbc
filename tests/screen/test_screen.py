"""A screen follows a log: with its sizes, over gaps, from where it was put away, and fast through floods."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.screen import screen as screens
from holdfast.screen.ghostty import Ghostty
from holdfast.screen.marks import ResizeMark, next_cut, size_at
from tests.logs.written import Written
from tests.screen.made import LIBRARY, caught_up, screen, sized


def shown(data: bytes, cols: int = 80, rows: int = 24) -> list[str]:
    terminal = Ghostty(LIBRARY, cols, rows)
    terminal.feed(data)
    return terminal.picture().lines


def test_it_shows_the_log_as_far_as_it_goes(tmp_path: Path) -> None:
    written = Written(tmp_path, 10)
    seen = screen(tmp_path)
    written.append(b"one\r\ntwo and thr")
    assert not seen.advance(sized())
    assert seen.picture(sized(), False).lines[:2] == ["one", "two and thr"]
    written.append(b"ee\r\n")
    caught_up(seen, sized())
    assert seen.picture(sized(), False).lines[:3] == ["one", "two and three", ""]
    assert seen.at == len(written.content)


def test_sizes_take_effect_where_they_did(tmp_path: Path) -> None:
    written = Written(tmp_path, 1 << 20)
    written.append(b"\x1b[2J\x1b[H\x1b[999;999HA")
    wanted = sized(10, 4, (len(written.content), 30, 8))
    written.append(b"\x1b[999;999HB")
    lines = caught_up(screen(tmp_path), wanted).picture(wanted, False).lines
    assert len(lines) == 8
    assert lines[7] == " " * 29 + "B"
    assert "         A" in lines


def test_questions_before_a_place_count_as_dealt_with(tmp_path: Path) -> None:
    written = Written(tmp_path, 1 << 20)
    written.append(b"\x1b[6nab\x1b[6n")
    seen = caught_up(screen(tmp_path), sized(handled=6))
    assert seen.take_replies() == [(len(written.content), b"\x1b[1;3R")]


def test_it_goes_on_from_where_it_was_put_away(tmp_path: Path) -> None:
    written = Written(tmp_path, 100)
    written.append(b"\x1b[?1049h\x1b[Hfull screen\x1b[3;4Hhe")
    first = caught_up(screen(tmp_path), sized())
    first.keep()
    first.close()
    written.append(b"re")
    written.drop_head(0)
    again = screen(tmp_path)
    assert again.at > 0
    picture = caught_up(again, sized()).picture(sized(), False)
    assert picture.lines[2] == "   here" and picture.alternate and again.gap is None


def test_a_snapshot_of_another_release_or_a_broken_one_is_not_used(tmp_path: Path) -> None:
    written = Written(tmp_path, 100)
    written.append(b"hello")
    caught_up(screen(tmp_path), sized()).keep()
    assert screen(tmp_path, version="2").at == 0
    kept = (tmp_path / "screen").read_bytes()
    (tmp_path / "screen").write_bytes(kept[:-3])
    assert caught_up(screen(tmp_path), sized()).picture(sized(), False).lines[0] == "hello"


def test_a_dropped_head_is_a_gap_that_ends_with_a_line(tmp_path: Path) -> None:
    written = Written(tmp_path, 20)
    written.append(b"\x1b[31mfirst line\r\nsecond line of it\r\nthird\r\nfourth\r\n")
    written.drop_head(1)
    seen = caught_up(screen(tmp_path), sized())
    assert seen.gap is not None and seen.gap >= 20
    assert seen.picture(sized(), False).lines[:3] == ["third", "fourth", ""]


def test_far_behind_it_goes_on_with_the_end(tmp_path: Path) -> None:
    written = Written(tmp_path, 8 << 20)
    line = b"\x1b[32m%08d\x1b[0m of many lines\r\n"
    count = screens.FARTHEST // len(line % 0) + 2
    written.append(b"".join(line % n for n in range(count)))
    seen = caught_up(screen(tmp_path), sized())
    assert seen.gap is not None
    assert seen.picture(sized(), False).lines[-2] == f"{count - 1:08d} of many lines"


TEXT = st.text(st.sampled_from("ab \t中é"), max_size=60).map(str.encode)


@settings(max_examples=40)
@given(
    lines=st.lists(TEXT, min_size=1, max_size=80),
    repeat=st.integers(30, 60),
    ends=st.sampled_from([b"\r\n", b"\n", b"\n\r\n"]),
    rest=TEXT,
)
def test_only_the_end_of_a_flood_counts(lines: list[bytes], repeat: int, ends: bytes, rest: bytes) -> None:
    data = ends.join([*lines * repeat, b"\r\n", rest])
    assert screens.is_plain(data)
    cut = screens.shown_end(data, 50)
    assert data.endswith(cut)
    assert shown(b"before\x1b[5;5H" + cut, 40, 10) == shown(b"before\x1b[5;5H" + data, 40, 10)


def test_margins_keep_a_flood_from_being_shortened(tmp_path: Path) -> None:
    written = Written(tmp_path, 1 << 20)
    flood = b"".join(b"%d\r\n" % n for n in range(30_000))
    written.append(b"top\r\n\x1b[5;2" + b"0r")
    written.append(flood)
    seen = caught_up(screen(tmp_path), sized())
    assert seen.picture(sized(), False).lines == shown(written.content)


def test_the_size_that_counts_and_the_next_cut() -> None:
    resizes = [ResizeMark(0, 80, 24), ResizeMark(5, 90, 25), ResizeMark(5, 91, 26)]
    assert size_at(resizes, 4) == (80, 24)
    assert size_at(resizes, 5) == (91, 26)
    assert size_at([], 5) is None
    assert next_cut(0, 10, [0, 5, 7], [3]) == 3
    assert next_cut(7, 10, [5, 7, 10]) == 10
