"""The text view: nothing only a terminal understands, and the same text however the bytes are cut."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.text import LONGEST_HELD, TextView, with_resets, without_sequences


def view(*chunks: bytes) -> str:
    text = TextView()
    return "".join([text.feed(chunk) for chunk in chunks]) + text.close()


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"", ""),
        (b"plain\ntext", "plain\ntext"),
        (b"tab\there\n", "tab\there\n"),
        (b"dos\r\nunix\n\r\n", "dos\nunix\n\n"),
        (b"pty twice\r\r\n", "pty twice\n"),
        (b"\x1b[1;31mred\x1b[0m!\n", "red!\n"),
        (b"\x1b[?25l\x1b[2J\x1b[10;20Hx", "x"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bPq#0;2;0;0;0\x1b\\sixel", "sixel"),
        (b"\x1b(B\x1b7\x1b8\x1b=\x1bcx", "x"),
        (b"\x1b_Gf=100;AAAA\x1b\\apc", "apc"),
        (b"\xc2\x9b31mc1\xc2\x9d0;t\x07!", "c1!"),
        (b"a stray \x1b]introducer\nhides one line at most", "a stray \nhides one line at most"),
        (b"cut csi \x1b[31\nnext", "cut csi \nnext"),
        (b"bell\x07 nul\x00 del\x7f vt\x0b ff\x0c", "bell nul del vt ff"),
        (b"N\x08NA\x08AM\x08ME\x08E", "NAME"),
        (b"typo\x08\x08\x08\x08\x08good", "good"),
        (b"ab\x08 \x08c", "ac"),
        ("größe → 日本 😀\n".encode(), "größe → 日本 😀\n"),
        (b"bad \xff byte", "bad � byte"),
        (b"\r50%\r100%\n", "50% … 100% [2 updates]\n"),
        (b"50%\r50%\r50%\n", "50% [3 updates]\n"),
        (b"working\r       \rdone\n", "working … done [2 updates]\n"),
        (b"   \rjust one\n", "just one\n"),
        (b"50%\r\x1b[K100%\r\n", "50% … 100% [2 updates]\n"),
        (b"spaces kept   \r\n   \r\n", "spaces kept   \n   \n"),
        (b"- 1\x1b[2K\x1b[1G\\ 2\x1b[2K\x1b[1Gdone\n", "- 1 … done [3 updates]\n"),
        (b"spin\x1b[1000Dspun\n", "spin … spun [2 updates]\n"),
        (b"not \x1b[5Gback\x1b[2D\n", "not back\n"),
        (
            b"a 1\nb 1\n\x1b[2A\r\x1b[2Ka 2\n\x1b[2Kb 2\n\x1b[2Aa 3\nb 3\nend\n",
            "a 1\nb 1\na 2 … a 3 [2 updates]\nb 2 … b 3 [2 updates]\nend\n",
        ),
        (b"x\ny\n\x1b[2A\x1b[2K\rx: 9%\r\x1b[2B\x1b[1A\x1b[2K\ry: ok\r\x1b[1B", "x\ny\nx: 9%\ny: ok\n"),
        (b"top\x1b[Aone\n", "one\ntop"),
        (b"no\x1b[3Bmove\n", "nomove\n"),
        (b"left\rno\x08\x08\x08newline", "left … newline [2 updates]"),
    ],
)
def test_only_readable_text_is_left(raw: bytes, shown: str) -> None:
    assert view(raw) == shown


def test_ten_thousand_updates_are_one_line_with_first_last_and_count() -> None:
    raw = b"".join(b"\r%3d%% done" % (n // 100) for n in range(10_000)) + b"\r100% done\n"
    assert view(raw) == "  0% done … 100% done [10001 updates]\n"


def test_several_bars_at_once_are_shown_first_and_last() -> None:
    raw = b"".join(b"\x1b[2A" * bool(n) + b"\r\x1b[Kone %d%%\n\r\x1b[Ktwo %d%%\n" % (n, n // 2) for n in range(101))
    shown = "one 0%\ntwo 0%\none 1% … one 100% [100 updates]\ntwo 0% … two 50% [100 updates]\n"
    assert view(raw) == shown
    assert view(raw + b"done\n") == shown + "done\n"


@pytest.mark.parametrize("character", ["é", "→", "€", "日", "😀"])
def test_a_character_survives_being_cut_anywhere(character: str) -> None:
    raw = ("x" + character * 3 + "y").encode()
    for cut in range(len(raw) + 1):
        assert view(raw[:cut], raw[cut:]) == raw.decode()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_truncated_tail_is_exactly_one_replacement_character(size: int) -> None:
    assert view(b"ok ", "😀".encode()[:size]) == "ok �"


def test_sequences_of_any_length_are_held_in_little_memory() -> None:
    text = TextView()
    assert text.feed(b"\x1b[") + "".join(text.feed(b"1;" * 10_000) for _ in range(20)) == ""
    assert text._cut == "\x1b[?"
    assert text.feed(b"mred\n") == "red\n"
    assert text.feed(b"\x1b]52;c;") + "".join(text.feed(b"QUFB" * 10_000) for _ in range(20)) == ""
    assert text.feed(b"\x1b\\after\n") == "after\n"


def test_a_line_without_end_is_let_go_in_parts() -> None:
    text = TextView()
    out = [text.feed(b"x" * 1000) for _ in range(1000)]
    assert sum(map(len, out)) >= 1_000_000 - LONGEST_HELD
    assert "".join(out) + text.close() == "x" * 1_000_000


def test_the_unfinished_line_can_be_looked_at() -> None:
    text = TextView()
    assert text.feed(b"done\nPassword: ") == "done\n"
    assert text.peek() == "Password: "
    assert text.close() == "Password: "


#: What makes trouble when it is cut, or meets another of its kind.
_AWKWARD = [
    *(b"\r", b"\n", b"\r\n", b"\x08", b"\x00", b"\x07", b"\x18", b" ", b"!", b"/", b"x", b"0;"),
    *(b"\x1b", b"\x1b[", b"\x1b[31m", b"\x1b]0;", b"\x1b\\", b"\x1bP", b"\x1b("),
    *(b"\x1b[2A", b"\x1b[A", b"\x1b[12", b"\x1b[B", b"\x1b[1F", b"\x1b[2K", b"\x1b[1G", b"\x1b[9999A", b"\x1b[12345A"),
    *(b"\x9b", b"\xc2", b"\xc2\x9b", b"\xc2\x9d", b"\xc2\x85", b"\xf0\x9f\x98\x80", b"\xf0\x9f"),
    *(b"y" * (LONGEST_HELD - 1), b"z" * (LONGEST_HELD + 1)),
]
_pieces = st.lists(st.sampled_from(_AWKWARD) | st.binary(max_size=4) | st.text(max_size=4).map(str.encode), max_size=24)


@given(pieces=_pieces, cuts=st.lists(st.integers(0, 200), max_size=12))
def test_any_chunking_gives_the_same_text(pieces: list[bytes], cuts: list[int]) -> None:
    raw = b"".join(pieces)
    marks = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    assert view(*(raw[a:b] for a, b in itertools.pairwise(marks))) == view(raw)


@given(pieces=_pieces)
def test_byte_by_byte_and_piece_by_piece_give_the_same_text(pieces: list[bytes]) -> None:
    raw = b"".join(pieces)[:3000]
    assert view(*(raw[n : n + 1] for n in range(len(raw)))) == view(raw)
    assert view(*pieces) == view(b"".join(pieces))


@given(pieces=_pieces)
def test_no_control_character_is_left(pieces: list[bytes]) -> None:
    shown = view(b"".join(pieces))
    assert not [c for c in shown if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) <= 0x9F]


def test_a_hostile_line_of_backspaces_takes_no_ages() -> None:
    began = time.process_time()
    view(b"x" * LONGEST_HELD, b"y\x08" * 50_000, b"\x08" * 100_000)
    assert time.process_time() - began < 5


def coloured(*chunks: bytes) -> str:
    text = TextView(colours=True)
    return "".join([text.feed(chunk) for chunk in chunks]) + text.close()


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[1;31mred\x1b[0m!\n", "\x1b[1;31mred\x1b[0m!\n"),
        (b"\x1b[38:2::255:0:10mred\x1b[m", "\x1b[38:2::255:0:10mred\x1b[m"),
        (b"\x1b[2J\x1b[31mred\x1b]0;title\x07\x1b[?25h\n", "\x1b[31mred\n"),
        (b"\x1b[>4;1mx\x1b[31 mx", "xx"),  # not colours, although they end with m
        ("\x9b31mx".encode(), "x"),
        (b"ab\x1b[1mcd\b\b\bX\n", "a\x1b[1mX\n"),
        (b"\x1b[32m1%\x1b[0m\r\x1b[32m2%\x1b[0m\n", "\x1b[32m1%\x1b[0m … \x1b[32m2%\x1b[0m [2 updates]\n"),
        (b"\x1b[0m\rx\n", "x\n"),
        (b"\x1b[" + b"1;" * 100 + b"mx", "x"),  # longer than any colour
    ],
)
def test_colours_can_be_kept_and_nothing_else(raw: bytes, shown: str) -> None:
    assert coloured(raw) == shown
    assert coloured(*(raw[at : at + 1] for at in range(len(raw)))) == shown


@given(
    st.lists(
        st.sampled_from(
            [b"a", b"\x1b[31m", b"\x1b[0m", b"\n", b"\r", b"\b", b"\x1b[2K", b"\x1b[", b"3", b"m", b"\x1b[A"]
        )
    )
)
def test_text_with_colours_is_the_text_and_colours(chunks: list[bytes]) -> None:
    raw = b"".join(chunks)
    assert without_sequences(coloured(raw)).replace(" ", "") == view(raw).replace(" ", "")
    assert coloured(*chunks) == coloured(raw)


def test_long_lines_are_not_cut_within_a_colour() -> None:
    text = TextView(colours=True)
    pieces = [text.feed(b"x" * (LONGEST_HELD - 2) + b"\x1b[31m" + b"y" * 10), text.close()]
    assert pieces == ["x" * (LONGEST_HELD - 2), "\x1b[31m" + "y" * 10]


def test_colours_end_with_the_line() -> None:
    assert with_resets("plain\n\x1b[31mred\nplain") == "plain\n\x1b[31mred\x1b[0m\nplain"
    assert with_resets("plain\n") == "plain\n"
