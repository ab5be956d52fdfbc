"""Patterns of `ready_log`: the same is found however the output is cut."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import BadValue
from holdfast.logs.matcher import OnePattern, StreamMatcher
from holdfast.logs.pattern import compile_pattern
from holdfast.logs.states import CELL

PATTERNS = [
    "ready",
    "^ready$",
    "^$",
    r"port 80\b",
    "port 80$",
    "a.*b",
    "[^x]y",
    r"\Bb",
    "é",
    "100%",
    "^ab?$",
    r"^\s+$",
]
PIECES = st.sampled_from(
    [
        "ready",
        "re",
        "ady",
        "port 80",
        "80",
        "\n",
        "\r\n",
        "\r",
        "\b",
        " ",
        "a",
        "b",
        "xy",
        "é",
        "100%",
        "\x1b[1m",
        "\x1b",
    ]
)


def found(pattern: str, *pieces: bytes) -> bool:
    matcher = StreamMatcher(OnePattern(compile_pattern(pattern, key="ready_log")), b"\n", -1)
    return any(any(matcher.feed(matcher.at, piece)) or any(matcher.peek()) for piece in pieces)


@given(st.sampled_from(PATTERNS), st.lists(PIECES, max_size=12), st.lists(st.integers(0, 80), max_size=8))
def test_the_same_is_found_however_it_is_cut(pattern: str, texts: list[str], cuts: list[int]) -> None:
    whole = "".join(texts).encode()
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(edges)]
    assert found(pattern, *pieces) == found(pattern, whole)
    assert found(pattern, *(bytes([byte]) for byte in whole)) == found(pattern, whole)


@pytest.mark.parametrize(
    ("pattern", "output"),
    [
        ("listening on", b"server listening on 80"),
        ("^> $", b"hello\n> \n"),
        ("> ", b"> "),
        ("^ready$", b"\x1b[32mready\x1b[0m\r\n"),
        ("50%", b"0%\r50%\r100%\n"),
        ("^done$", b"half\b\b\b\bdone\n"),
        ("Größe", "Größe".encode()),
        ("(?i)READY", b"ready"),
    ],
)
def test_the_visible_text_is_found(pattern: str, output: bytes) -> None:
    assert found(pattern, output)
    assert found(pattern, *(bytes([byte]) for byte in output))


@pytest.mark.parametrize(
    ("pattern", "output"),
    [("port 80$", b"port 80"), (r"80\b", b"on 80"), ("a[^x]*b", b"a\nb"), ("^ready", b"al" + b"ready"), ("ready", b"")],
)
def test_text_that_may_still_change_is_not_found(pattern: str, output: bytes) -> None:
    assert not found(pattern, output)


def test_the_rest_of_a_long_line_does_not_begin_a_line() -> None:
    assert not found("^x", b"a" * CELL, *[b"x" * CELL] * 5, b"\n")


@pytest.mark.parametrize("pattern", ["(", "(?=x)", r"(a)\1", "a{2000}", "a**", "[", "(?<n>", "((a{100}){100}){100}"])
def test_a_pattern_that_re2_refuses_is_refused_with_its_reason(pattern: str) -> None:
    with pytest.raises(BadValue, match=r"re2 refuses the pattern: .") as refused:
        compile_pattern(pattern, key="ready_log")
    assert "\n" not in refused.value.message


def test_an_evil_pattern_takes_no_longer_than_others() -> None:
    began = time.process_time()
    assert not found("(a+)+$x|(a|aa)+b", *[b"a" * 1000] * 50)
    assert time.process_time() - began < 5
