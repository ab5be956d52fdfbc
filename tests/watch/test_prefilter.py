"""The faster engine may say too much, never too little: with it and without it, the same lines match."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.errors import BadValue
from holdfast.watch import patterns
from holdfast.watch.patterns import Patterns
from holdfast.watch.prefilter import Prefilter

ATOMS = [
    "abk",
    "kSb",
    "aab",
    "ék",
    r"\w",
    r"\b",
    "[ab]",
    "(aab|kSb)",
    "(?:abk|k)",
    "b{2}",
    "a.",
    r"\.aab",
    "ab(k|S)a",
    "k",
]
EXPRESSIONS = st.builds(
    lambda flag, begin, inner, end: flag + begin + "".join(inner) + end,
    st.sampled_from(["", "(?i)"]),
    st.sampled_from(["", "^"]),
    st.lists(st.builds(str.__add__, st.sampled_from(ATOMS), st.sampled_from(["", "", "*", "+", "?", "|"])), max_size=4),
    st.sampled_from(["", "$"]),
)
TEXTS = st.lists(st.text(st.sampled_from("aabAkKSsé .\n\u212a"), max_size=80), min_size=1, max_size=20)


@settings(max_examples=100)
@given(
    st.lists(st.text(st.sampled_from("ab.é}$ \\"), min_size=1, max_size=3), max_size=2),
    st.lists(EXPRESSIONS, max_size=3),
    TEXTS,
)
def test_the_same_lines_match_with_it_and_without_it(
    literals: list[str], expressions: list[str], texts: list[str]
) -> None:
    try:
        ours, filtering = Patterns(literals, expressions), Prefilter(literals, expressions)
    except (BadValue, ValueError):
        assume(False)
    assume(not ours.match_nothing)
    for text in texts:
        data = text.encode() + b"\n"
        places = filtering.places(data)
        if places is not None:
            alone = [(line.start, line.stop) for line in ours.lines(data, 0, len(data) - 1)]
            assert [(line.start, line.stop) for line in ours._confirmed(data, 0, len(data) - 1, places)] == alone


def test_it_is_there_once_there_is_much_to_look_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_MANY", 1000)
    made = Patterns(["READY"], [r"and E\d+$", "(?i)(NOT|never)"])
    data = b"READY\n" + b"some line or other\n" * 1000 + b"and E12\nE12 not\nREADY\n"
    found = [list(made.lines(data, 0, len(data) - 1)) for _ in range(2)]
    assert made._prefilter is not None
    thread = made._prefilter.making
    assert thread is not None
    thread.join()
    assert made._prefilter.get(len(data)) is not None
    found.append(list(made.lines(data, 0, len(data) - 1)))
    assert found[0] == found[1] == found[2] and len(found[0]) == 4
