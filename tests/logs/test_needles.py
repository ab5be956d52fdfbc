"""Every match of a pattern contains one of its needles."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.logs.finder import Finder
from holdfast.logs.needles import is_literal, needles
from holdfast.logs.pattern import compile_pattern

PARTS = [
    "abc",
    "error",
    "x",
    "é",
    ".",
    ".*",
    "a+",
    "b?",
    "(cd|ef)",
    "(?:gh)*",
    "[xyz]",
    "\\.",
    "\\b",
    "^",
    "$",
    "|",
    "a{2}",
    "\\d",
]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("error", ["error"]),
        ("error|fatal|panic", ["error", "fatal", "panic"]),
        (r"\bstatus=5", ["status=5"]),
        ("^.*status=500$", ["status=500"]),
        ("errors?", ["error"]),
        ("ab+cdef", ["cdef"]),
        ("(error|fatal): disk", [": disk"]),
        (r"a\.b\.c", ["a.b.c"]),
        ("error|", []),
        ("(?i)error", []),
        ("[error]", []),
        ("ab", []),
        ("err{0,3}", []),
        (r"\x41\x42\x43", []),
        (r"\Qa.b\E", []),
        ("grün", ["grün"]),
    ],
)
def test_what_must_stand_there(pattern: str, found: list[str]) -> None:
    assert needles(pattern) == tuple(found)


@settings(deadline=None)
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join), st.text("abcdefghxé.r ", max_size=40))
def test_a_match_has_a_needle(pattern: str, text: str) -> None:
    try:
        found = re.search(pattern, text)
    except re.error:
        return
    known = needles(pattern)
    assert not known or found is None or any(needle in found[0] for needle in known)
    assert not is_literal(pattern) or bool(found) == (pattern in text)


@pytest.mark.parametrize("pattern", ["err 1", "err 1|err 2", r"\berr [0-3]\b.*", "5 err", "rr", "é", "1 é|err 5"])
def test_every_way_finds_the_same(pattern: str) -> None:
    data = "".join(f"{n} err {n % 7}\n" if n % 3 else f"{n} é fine\n" for n in range(20_000)).encode()[:-1]
    finder = Finder(compile_pattern(pattern))
    expected = list(finder._by_pattern(data, 0, len(data)))
    for _ in range(5):
        assert [place[:2] for place in finder.matching(data, 0, len(data))] == [place[:2] for place in expected]
        assert finder.count(data, 0, len(data)) == len(expected)
