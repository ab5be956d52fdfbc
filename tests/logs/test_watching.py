"""Waiting for a pattern: what is found does not depend on how the output comes in."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.logs.pattern import compile_pattern
from holdfast.logs.watching import Found, Watching

WORDS = st.sampled_from(
    [b"a", b"b", b"ab", b"err", b" ", b"\n", b"\r\n", b"\r", b"\x1b[31m", b"\x1b[0m", "é".encode(), b"\xff", b"0%"]
)
LOGS = st.lists(WORDS, max_size=40).map(b"".join)
PATTERNS = st.sampled_from(["err", "^a", "b$", "^b*$", r"\bab\b", "a.b", "é", "%$", "(ab)+", "a b|ab"])


def watched(pattern: str, pieces: list[bytes], after: int = 0, is_over: bool = True) -> Found | None:
    watching = Watching(compile_pattern(pattern), after)
    at = 0
    for piece in pieces:
        if found := watching.feed(at, piece) or watching.peek():
            return found
        at += len(piece)
    return watching.finish() if is_over else None


@settings(deadline=None)
@given(LOGS, PATTERNS, st.lists(st.integers(0, 100)))
def test_cuts_do_not_change_what_is_found(log: bytes, pattern: str, cuts: list[int]) -> None:
    assume(re.search(pattern, "") is None)  # what matches nothing at all is found at once, wherever that is
    ends = sorted({min(cut, len(log)) for cut in cuts} | {0, len(log)})
    whole = watched(pattern, [log])
    cut = watched(pattern, [log[a:b] for a, b in itertools.pairwise(ends)])
    by_byte = watched(pattern, [log[n : n + 1] for n in range(len(log))])
    assert _place(whole) == _place(cut) == _place(by_byte)


def _place(found: Found | None) -> int | None:
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
def test_a_match_is_found_as_soon_as_it_is_one(pattern: str, pieces: list[bytes], text: str | None) -> None:
    found = watched(pattern, pieces, is_over=False)
    assert found is not None
    assert text is None or found.text == text
    assert watched(pattern, pieces[:-1], is_over=False) is None or pieces[-1] == b"\r 10%"


@pytest.mark.parametrize("pieces", [[b"ready"], [b"rea", b"dy"]])
def test_what_depends_on_the_end_of_the_line_waits_for_it(pieces: list[bytes]) -> None:
    assert watched("ready$", pieces, is_over=False) is None
    assert watched("ready$", [*pieces, b"ing\n"], is_over=False) is None
    assert watched("ready$", pieces) is not None


def test_only_what_ends_behind_the_given_byte_is_news() -> None:
    log = b"ready\nready again"
    assert watched("ready", [log], after=11, is_over=False) is None
    assert watched("ready", [log + b" ready"], after=11, is_over=False) is not None
    assert watched("^again", [log], after=12, is_over=False) is None
    found = watched("ready again", [log], after=15, is_over=False)
    assert found is not None and (found.start, found.match) == (6, 6)


def test_an_overwritten_line_is_not_kept_for_ever() -> None:
    watching = Watching(compile_pattern("never"))
    at = 0
    for n in range(3000):
        piece = b"\r%06d of many" % n
        assert watching.feed(at, piece) is None and watching.peek() is None
        at += len(piece)
    assert len(watching._held) < 1000
    assert watching.feed(at, b"\rnever") or watching.peek()
