"""Output made to fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.shortening import CharacterBudget, Short, estimate, fold, join, shorten

_TEXTS = st.lists(st.text(st.sampled_from("ab1 ÿ漢_-"), max_size=80), max_size=60).map("\n".join)
_ROOMS = st.builds(CharacterBudget, st.integers(50, 2000), st.integers(30, 800))


@given(_TEXTS, _ROOMS)
def test_what_is_shown_fits_and_what_is_not_is_counted(text: str, room: CharacterBudget) -> None:
    short = shorten(text, room)
    shown = short.head + short.tail
    assert len(shown) + short.left_out == len(text)
    assert text.startswith(short.head) and text.endswith(short.tail)
    assert len(shown) <= room.characters
    assert estimate(short.head) + estimate(short.tail) <= room.tokens
    assert short.lines == text[len(short.head) : len(text) - len(short.tail)].count("\n")


@given(_TEXTS, _ROOMS)
def test_it_cuts_where_lines_end_if_any_do(text: str, room: CharacterBudget) -> None:
    short = shorten(text, room)
    if short.left_out and "\n" in short.head:
        assert short.head.endswith("\n")
    if short.left_out and "\n" in short.tail.removesuffix("\n"):
        assert text[len(text) - len(short.tail) - 1] == "\n"


def test_text_that_is_many_tokens_is_cut_sooner_than_prose() -> None:
    room = CharacterBudget(30_000, 5_000)
    prose, dense = "the quick brown fox jumps over it\n" * 600, "漢字仮名交文漢字仮名交文\n" * 1500
    assert shorten(prose, room) == Short(prose, "", 0, 0)
    short = shorten(dense, room)
    assert 0 < len(short.head) + len(short.tail) <= 5_000


def test_one_line_without_an_end_is_cut_within() -> None:
    short = shorten("x" * 100_000, CharacterBudget(1_000, 1_000))
    assert len(short.head) + len(short.tail) + short.left_out == 100_000
    assert 300 <= len(short.head) + len(short.tail) <= 1_000


@given(_TEXTS, _TEXTS, st.integers(0, 10**9), _ROOMS)
def test_ends_that_are_all_one_has_are_joined(first: str, last: str, unread: int, room: CharacterBudget) -> None:
    short = join(first, unread, last, room)
    assert first.startswith(short.head) and last.endswith(short.tail)
    assert short.left_out == len(first) + unread + len(last) - len(short.head) - len(short.tail)


def test_rows_of_lines_that_differ_in_numbers_are_folded() -> None:
    text = "begin\n" + "".join(f"compiling file {n} of 500\n" for n in range(500)) + "done\n"
    folded = fold(text)
    assert folded.startswith("begin\ncompiling file 0 of 500\ncompiling file 1 of 500\ncompiling file 2 of 500\n[… 494")
    assert folded.endswith("compiling file 499 of 500\ndone\n")


def test_tables_of_numbers_are_data_and_stay() -> None:
    text = "".join(f"{n} {n * n}\n" for n in range(500))
    assert fold(text) == text


@given(_TEXTS)
def test_folding_never_makes_it_longer_than_it_was(text: str) -> None:
    assert len(fold(text)) <= len(text) + 60
