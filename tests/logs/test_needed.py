"""Which texts a match has to contain, and that each way to use them finds the same lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.logs.finder import Finder
from holdfast.logs.needed import needed
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
    ("expression", "texts"),
    [
        ("listening on", {"listening on"}),
        (r"took \d+ms for job", {"ms for job"}),
        (r"(ERROR|FATAL): \w+", {"ERROR", "FATAL"}),
        (r"(?:error|fail(ed|ure))+ in", {"error", "fail"}),
        (r"^E\d{4}.*corrupt(ed)?$", {"corrupt"}),
        (r"warn|error", {"warn", "error"}),
        (r"abc+d", {"abc"}),
        (r"abcd?e", {"abc"}),
        (r"1\.2\.3", {"1.2.3"}),
        ("(?P<what>panic): ", {"panic"}),
        ("(?i)Exception in", {"Exception in"}),
        ("(abc){2}", {"abc"}),
        ("(error|fatal): disk", {": disk"}),
        ("grün", {"grün"}),
        ("errors?", {"error"}),
    ],
)
def test_one_for_each_alternative(expression: str, texts: set[str]) -> None:
    found = needed(expression)
    assert found is not None and found.texts == texts
    assert found.is_caseless == expression.startswith("(?i)")


@pytest.mark.parametrize(
    "expression",
    [
        "ab",
        "error|x",
        "(error)?",
        "(error|)",
        "[a-z]+",
        "(?i)é€ürich",
        "a(?i)bcd",
        r"\Qerror\E",
        r"\x41bcd",
        "(abc)*",
        "err{0,3}",
        "error|",
    ],
)
def test_none_where_the_expression_is_too_complex(expression: str) -> None:
    assert needed(expression) is None


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join), st.text("abcdefghxé.r ", max_size=40))
def test_every_match_contains_a_needed_text(pattern: str, text: str) -> None:
    try:
        found = re.search(pattern, text)
    except re.error:
        return
    known = needed(pattern)
    assert known is None or found is None or any(part in found[0] for part in known.texts)


@pytest.mark.parametrize("pattern", ["err 1", "err 1|err 2", r"\berr [0-3]\b.*", "5 err", "rr", "é", "1 é|err 5"])
def test_every_way_finds_the_same(pattern: str) -> None:
    data = "".join(f"{n} err {n % 7}\n" if n % 3 else f"{n} é fine\n" for n in range(20_000)).encode()[:-1]
    finder = Finder(compile_pattern(pattern))
    expected = list(finder._by_pattern(data, 0, len(data)))
    for _ in range(5):
        assert [place[:2] for place in finder.matching(data, 0, len(data))] == [place[:2] for place in expected]
        assert finder.count(data, 0, len(data)) == len(expected)
