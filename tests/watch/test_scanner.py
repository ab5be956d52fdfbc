"""However a log is cut and wherever scanning is taken up again, the same lines match."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.logs import states
from holdfast.logs.matcher import StreamMatcher
from holdfast.model.notices.watching import WatchMatch
from holdfast.watch.jobs import match_of
from holdfast.watch.patterns import Patterns
from tests.watch import whole

LITERALS = ("READY", "é€", "ab")
EXPRESSIONS = (r"^b+$", r"R\w+Y\b", r"a\B", "(?i)error: .*c", r"x*$")
PIECES = st.sampled_from(
    [
        b"READY",
        b"REA",
        b"DY",
        b"\n",
        b"\r",
        b"\r\n",
        b"a",
        b"b",
        b" ",
        "é€".encode(),
        b"\xc3",
        b"\xa9\xe2",
        b"\x82",
        b"\xac",
        b"\x1b[31m",
        b"\x1b[",
        b"2K",
        b"K",
        b"1G",
        b"A",
        b"\x1b]0;t",
        b"\x07",
        b"\x1b",
        b"\x00",
        b"\xff",
        b"ERROR: ",
        b"c",
        b"\t",
        b"\xc2\x9b",
        b"100D",
    ]
)
LOGS = st.lists(PIECES, max_size=60).map(b"".join)


def taken_up(patterns: Patterns, log: bytes, after: int, first: int = 0) -> StreamMatcher:
    base = max(first, after - states.LOOKBACK)
    return StreamMatcher(patterns, log[base:after], base, base == first)


def scanned(
    patterns: Patterns, log: bytes, cuts: Sequence[tuple[int, bool]], is_final: bool, first: int = 0
) -> list[WatchMatch]:
    """Scan in pieces that end at `cuts`; where it is so marked, by a new matcher that knows only the log."""
    matcher = taken_up(patterns, log, first, first)
    told: list[WatchMatch] = []
    for cut, is_crash in (*sorted(cuts), (len(log), False)):
        if cut < matcher.at:
            continue
        told += [match_of(matcher.shown(found), "out") for found in matcher.feed(matcher.at, log[matcher.at : cut])]
        told += [match_of(matcher.shown(found), "out") for found in matcher.peek()]
        if is_crash:
            matcher = taken_up(patterns, log, cut, first)
    if is_final:
        told += [match_of(matcher.shown(found), "out") for found in matcher.finish()]
    return told


@settings(max_examples=400)
@given(LOGS, st.lists(st.tuples(st.integers(0, 200), st.booleans()), max_size=8), st.booleans(), st.data())
def test_any_cuts_and_crashes_give_what_the_whole_log_gives(
    log: bytes, cuts: list[tuple[int, bool]], is_final: bool, data: st.DataObject
) -> None:
    literals = data.draw(st.lists(st.sampled_from(LITERALS), unique=True, max_size=3))
    expressions = data.draw(st.lists(st.sampled_from(EXPRESSIONS), unique=True, min_size=not literals, max_size=3))
    cuts = [(min(cut, len(log)), is_crash) for cut, is_crash in cuts]
    told = scanned(Patterns(literals, expressions), log, cuts, is_final)
    expected = whole.found(log, literals, expressions, is_final)
    assert [match.offset for match in told] == [start for start, *_ in expected]
    for match, (_, stop, names, text) in zip(told, expected, strict=True):
        assert match.pattern in names
        assert text.startswith(match.output)
        if not cuts and stop < len(log):
            assert (match.end, match.pattern, match.output) == (stop, names[0], text)
