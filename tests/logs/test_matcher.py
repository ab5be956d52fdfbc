"""One pattern in output as it comes: the match does not depend on how the output is cut."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.logs import states
from holdfast.logs.matcher import LogMatch, OnePattern, StreamMatcher
from holdfast.logs.pattern import compile_pattern

WORDS = st.sampled_from(
    [b"a", b"b", b"ab", b"err", b" ", b"\n", b"\r\n", b"\r", b"\x1b[31m", b"\x1b[0m", "é".encode(), b"\xff", b"0%"]
)
LOGS = st.lists(WORDS, max_size=40).map(b"".join)
PATTERNS = st.sampled_from(["err", "^a", "b$", "^b*$", r"\bab\b", "a.b", "é", "%$", "(ab)+", "a b|ab"])


def matched(pattern: str, pieces: list[bytes], context: bytes = b"", is_over: bool = True) -> LogMatch | None:
    matcher = StreamMatcher(OnePattern(compile_pattern(pattern)), context, repeats=True)
    for piece in pieces:
        for found in (*matcher.feed(matcher.at, piece), *matcher.peek()):
            return matcher.shown(found)
    last = next(matcher.finish(), None) if is_over else None
    return None if last is None else matcher.shown(last)


@given(LOGS, PATTERNS, st.lists(st.integers(0, 100)))
def test_cuts_do_not_change_what_is_found(log: bytes, pattern: str, cuts: list[int]) -> None:
    assume(re.search(pattern, "") is None)  # what matches nothing at all is found at once, wherever that is
    ends = sorted({min(cut, len(log)) for cut in cuts} | {0, len(log)})
    whole = matched(pattern, [log])
    cut = matched(pattern, [log[a:b] for a, b in itertools.pairwise(ends)])
    by_byte = matched(pattern, [log[n : n + 1] for n in range(len(log))])
    assert _place(whole) == _place(cut) == _place(by_byte)


def _place(found: LogMatch | None) -> int | None:
    return None if found is None else found.start


@pytest.mark.parametrize(
    ("pattern", "pieces", "text"),
    [
        ("Password: ", [b"login\nPassw", b"ord: "], "Password: "),
        ("ready$", [b"not ready yet", b"\nready", b"\n"], "ready"),
        (r"\bready\b", [b"rea", b"dy", b" now"], "ready now"),
        ("100%", [b"\r 50%", b"\r100%", b"\r 10%"], "100%"),
        ("ready", [b"\x1b[1mre\x1b", b"[0mady"], "ready"),
        ("é", [b"\xc3", b"\xa9"], "é"),
        ("done", [b"x" * 200_000, b"x" * 200_000 + b"do", b"ne"], None),
    ],
)
def test_a_match_is_found_as_soon_as_it_cannot_change(pattern: str, pieces: list[bytes], text: str | None) -> None:
    found = matched(pattern, pieces, is_over=False)
    assert found is not None
    assert text is None or found.text == text
    assert matched(pattern, pieces[:-1], is_over=False) is None or pieces[-1] == b"\r 10%"


@pytest.mark.parametrize("pieces", [[b"ready"], [b"rea", b"dy"]])
def test_a_pattern_with_the_end_of_the_line_waits_for_it(pieces: list[bytes]) -> None:
    assert matched("ready$", pieces, is_over=False) is None
    assert matched("ready$", [*pieces, b"ing\n"], is_over=False) is None
    assert matched("ready$", pieces) is not None


def test_a_match_has_to_end_behind_the_context() -> None:
    assert matched("ready", [b" again"], b"ready\nready", is_over=False) is None
    assert matched("ready", [b" again ready"], b"ready\nready", is_over=False) is not None
    assert matched("^again", [b"again"], b"ready\nready ", is_over=False) is None
    found = matched("ready again", [b"in"], b"ready\nready aga", is_over=False)
    assert found is not None and (found.start, found.match) == (6, 6)


def test_an_overwritten_line_takes_constant_memory() -> None:
    matcher = StreamMatcher(OnePattern(compile_pattern("never")))
    for n in range(3000):
        assert not any(matcher.feed(matcher.at, b"\r%06d of many" % n)) and not any(matcher.peek())
    assert len(matcher._held) < 1000
    assert any(matcher.feed(matcher.at, b"\rnever")) or any(matcher.peek())


def test_a_long_line_takes_constant_memory() -> None:
    matcher = StreamMatcher(OnePattern(compile_pattern("needle$")))
    for _ in range(200):
        assert not any(matcher.feed(matcher.at, b"x" * 10_000)) and not any(matcher.peek())
        assert len(matcher._held) <= 3 * states.CELL
    assert not any(matcher.feed(matcher.at, b"nee")) and not any(matcher.feed(matcher.at, b"dle"))
    assert not any(matcher.peek())
    assert any(matcher.feed(matcher.at, b"\n"))


def test_a_gap_is_not_bridged() -> None:
    matcher = StreamMatcher(OnePattern(compile_pattern("ready")))
    assert not any(matcher.feed(0, b"rea"))
    assert not any(matcher.feed(4, b"dy")) and not any(matcher.peek())
