"""The emulator: its numbers are those of the package, it draws, answers and remembers."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyghostty._ffi import ffi, lib

from holdfast.screen import ghostty
from holdfast.screen.emulator import Unusable
from holdfast.screen.ghostty import Ghostty
from tests.screen.made import LIBRARY

NUMBERS = {
    "TERMINAL_OPT": {
        "WRITE_PTY": ghostty.WRITE_PTY,
        "SIZE": ghostty.SIZE,
        "COLOR_SCHEME": ghostty.COLOR_SCHEME,
        "DEVICE_ATTRIBUTES": ghostty.DEVICE_ATTRIBUTES,
        "COLOR_FOREGROUND": ghostty.COLOR_FOREGROUND,
        "COLOR_BACKGROUND": ghostty.COLOR_BACKGROUND,
        "KITTY_IMAGE_STORAGE_LIMIT": ghostty.IMAGE_LIMIT,
        "SCROLLBACK_MAX_LINES": ghostty.SCROLLBACK_MAX_LINES,
        "CONTINUATION_MAX_BYTES": ghostty.CONTINUATION_MAX,
    },
    "TERMINAL_DATA": {
        "COLS": ghostty.COLS,
        "ROWS": ghostty.ROWS,
        "CURSOR_X": ghostty.CURSOR_X,
        "CURSOR_Y": ghostty.CURSOR_Y,
        "ACTIVE_SCREEN": ghostty.SCREEN,
        "CURSOR_VISIBLE": ghostty.CURSOR_VISIBLE,
        "TITLE": ghostty.TITLE,
        "MODE": ghostty.MODE,
        "VT_GROUND": ghostty.GROUND,
    },
    "POINT_TAG": {"ACTIVE": ghostty.POINT_ACTIVE},
    "FORMATTER_FORMAT": {"PLAIN": ghostty.PLAIN, "VT": ghostty.VT},
    "SNAPSHOT_DECODER_OPT": {"RETAIN_CONTINUATION": ghostty.RETAIN_CONTINUATION},
}
LAYOUTS = {
    "GhosttyString": ghostty.ByteString,
    "GhosttyColorRgb": ghostty.Color,
    "GhosttyGridRef": ghostty.GridRef,
    "GhosttySelection": ghostty.Selection,
    "GhosttyTerminalSelectionFormatOptions": ghostty.FormatOptions,
    "GhosttyPoint": ghostty.Point,
    "GhosttySizeReportSize": ghostty.WindowSize,
    "GhosttyDeviceAttributes": ghostty.Attributes,
    "GhosttyTerminalModeConfig": ghostty.ModeValue,
}

SESSION = (
    "\x1b[?1049h\x1b[2J\x1b[5;20r\x1b[5;1Hcolours \x1b[1;38;5;208mor\x1b[38;2;1;2;3mange\x1b[0m 中文 é\u0301\r\n"
    "\x1b]2;title ü\x07\x1b(0lqqk\x1b(B\x1b[3@\x1b[2P\x1b[4h\x1b7\x1b[10;3Hxy\x1b8\x1b[4l\x1bM\x1bD\t|\x1b[?25l"
    "\n\n\x1b[2J\x1b[Hlast \x1b[7mline\x1b[27m\x1b[20;70Hdie Ecke, die umbricht"
).encode()


def terminal(cols: int = 80, rows: int = 24) -> Ghostty:
    return Ghostty(LIBRARY, cols, rows)


def test_numbers_and_layouts_are_those_of_the_package() -> None:
    for group, numbers in NUMBERS.items():
        for name, number in numbers.items():
            assert getattr(lib, f"GHOSTTY_{group}_{name}") == number, name
    for name, layout in LAYOUTS.items():
        assert ffi.sizeof(name) == ctypes.sizeof(layout), name


def test_what_is_written_is_shown() -> None:
    shown = terminal(20, 3)
    shown.feed(b"one\r\n\x1b]2;its title\x07\x1b[31mtwo\x1b[0m w\xc3\xb6")
    picture = shown.picture()
    assert picture.lines == ["one", "two wö", ""]
    assert (picture.row, picture.col, picture.cursor_visible) == (1, 6, True)
    assert (picture.cols, picture.rows, picture.title, picture.alternate) == (20, 3, "its title", False)
    shown.feed(b"\x1b[?1049h\x1b[?25l")
    assert shown.picture().alternate and not shown.picture().cursor_visible


def test_colours_come_as_sequences_and_nothing_else_does() -> None:
    shown = terminal(20, 2)
    shown.feed(b"\x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b[31mred\x1b[0m")
    line = shown.picture(ansi=True).lines[0]
    assert "\x1b[38;5;1mred" in line
    assert "\x1b]" not in line
    assert shown.picture(ansi=True).lines[1] == ""


def test_a_title_holds_nothing_that_a_terminal_obeys() -> None:
    shown = terminal()
    shown.feed(b"\x1b]2;ti\xc2\x9btle\x07")
    assert shown.picture().title == "title"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("\x1b[6n", "\x1b[2;4R"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[0c", "\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>1;10;0c"),
        ("\x1b[?25$p", "\x1b[?25;1$y"),
        ("\x1b[?2004$p", "\x1b[?2004;2$y"),
        ("\x1b[?9999$p", "\x1b[?9999;0$y"),
        ("\x1b]10;?\x07", "\x1b]10;rgb:cccc/cccc/cccc\x07"),
        ("\x1b]11;?\x1b\\", "\x1b]11;rgb:0000/0000/0000\x1b\\"),
        ("\x1b[>q", "\x1bP>|holdfast\x1b\\"),
        ("\x1b[18t", "\x1b[8;24;80t"),
        ("\x1b[?u", ""),
        ("\x1b]52;c;?\x07", ""),
        ("\x1b[21t", ""),
    ],
)
def test_questions_are_answered(question: str, answer: str) -> None:
    asked = terminal()
    asked.feed(b"\r\nabc")
    asked.feed(question.encode())
    assert b"".join(asked.take_replies()).decode() == answer
    assert asked.take_replies() == []


def test_a_flood_of_questions_is_answered_in_part() -> None:
    asked = terminal()
    asked.feed(b"\x1b[5n" * 10_000)
    assert 0 < len(asked.take_replies()) < 1000


@given(cuts=st.lists(st.integers(0, len(SESSION)), max_size=6).map(sorted), snapshot=st.booleans())
def test_bytes_may_come_cut_anywhere_and_the_terminal_may_be_put_away_meanwhile(
    cuts: list[int], snapshot: bool
) -> None:
    whole, pieces = terminal(), terminal()
    whole.feed(SESSION)
    for start, end in zip([0, *cuts], [*cuts, len(SESSION)], strict=True):
        pieces.feed(SESSION[start:end])
        if snapshot:
            kept = pieces.snapshot()
            pieces.close()
            pieces = Ghostty.restored(LIBRARY, kept)
    assert pieces.picture(ansi=True) == whole.picture(ansi=True)
    whole.close()
    pieces.close()


@given(st.binary(max_size=400), st.binary(max_size=40))
def test_no_bytes_harm_it(noise: bytes, more: bytes) -> None:
    harmed = terminal(20, 5)
    harmed.feed(b"\x1b[" + noise + b"\x1b]" + more + b"\x1bP" + noise)
    harmed.resize(7, 9)
    harmed.feed(more)
    picture = harmed.picture()
    assert len(picture.lines) == 9
    harmed.close()


def test_what_is_no_snapshot_is_refused() -> None:
    for broken in (b"", b"x" * 100, terminal().snapshot()[:-10]):
        with pytest.raises(Unusable):
            Ghostty.restored(LIBRARY, broken)


def test_modes_that_change_what_it_sends_are_named() -> None:
    made = terminal()
    assert made.picture().modes == []
    made.feed(b"\x1b[?1h\x1b=\x1b[?1002;1006h\x1b[?2004h\x1b[?7l")
    assert made.picture().modes == [1, 66, 1002, 1006, 2004]
    restored = Ghostty.restored(LIBRARY, made.snapshot())
    assert restored.picture(ansi=True).modes == [1, 66, 1002, 1006, 2004]
    made.feed(b"\x1b[?1;1002;1006;2004l\x1b>")
    assert made.picture().modes == []
