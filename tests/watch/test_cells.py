"""Lines that go on and on, and text that is taken back: found wherever they are cut, told once for each piece."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.logs import states
from holdfast.watch.patterns import Patterns
from tests.watch.test_scanner import scanned

PATTERNS = Patterns(["READY", "é€"], [r"^b+c", r"a\w+Z", r"b$", r"\bE", "d*$"])
PIECES = st.sampled_from(
    [
        b"READY",
        b"READ",
        b"Y",
        b"bbb",
        b"c",
        b"aaaa",
        b"Z",
        b" ",
        "é€".encode(),
        b"\xe2",
        b"\x82",
        b"\b",
        b"\b\b",
        b"\n",
        b"\r",
        b"\x1b[1",
        b"m",
        b"\x1b[2K",
        b"EE",
        b"-" * 20,
    ]
)
CUTS = st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=8)


def small_cells() -> AbstractContextManager[object]:
    return patch.multiple(states, CELL=32, OVERLAP=16, LOOKBACK=87)


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=80).map(b"".join), CUTS, st.booleans())
def test_any_cuts_and_crashes_give_the_same_places(log: bytes, cuts: list[tuple[int, bool]], is_final: bool) -> None:
    with small_cells():
        cuts = [(min(cut, len(log)), is_crash) for cut, is_crash in cuts]
        at_once = scanned(PATTERNS, log, [], is_final)
        assert [match.offset for match in scanned(PATTERNS, log, cuts, is_final)] == [m.offset for m in at_once]


@given(st.lists(st.sampled_from([b"READY", b"READ", b"-" * 9, b"Y" * 3, b"\n", b"\x1b[1m"]), max_size=60))
def test_a_text_is_found_wherever_it_stands_in_a_long_line(pieces: list[bytes]) -> None:
    log = b"".join(pieces)
    with small_cells():
        told = scanned(Patterns(["READY"], []), log, [], True)
    for found in re.finditer(b"READY", log):
        assert any(match.offset < found.end() <= match.end for match in told)
    assert len(told) <= len(re.findall(rb"R(?:\x1b\[1m)*E(?:\x1b\[1m)*A(?:\x1b\[1m)*D(?:\x1b\[1m)*Y", log))


def test_a_line_of_a_megabyte_is_looked_at_in_pieces() -> None:
    log = b"x" * 300_000 + b"READY" + b"x" * 700_000 + b" READY\nREADY\n"
    told = scanned(Patterns(["READY"], []), log, [(999_000, True)], False)
    assert [match.offset for match in told] == [262144, 983040, len(log) - 6]
    assert [match.is_cut for match in told] == [True, True, False]
    assert all(len(match.output) <= 2000 and "READY" in match.output for match in told)


def test_what_was_typed_over_counts_in_each_version() -> None:
    log = b"RE\b\bREADX\bY!\b\b\b\n"
    assert [match.output for match in scanned(Patterns(["READY"], []), log, [], True)] == ["READY!"]
    assert [match.output for match in scanned(Patterns([], ["^REA$"]), log, [], True)] == ["REA"]
