"""What is made of samples: shares, peaks, history, blocks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.probes.usage import HISTORY, Track, most
from holdfast.model.units import sparkline

_SIZES = st.one_of(st.none(), st.integers(0, 1 << 50))


def test_a_share_is_what_was_used_between_two_looks() -> None:
    track = Track()
    assert track.take_cpu(1.0, now=100.0)
    assert not track.cpu_percent
    assert track.take_cpu(2.0, now=102.0)
    assert track.cpu_percent == 50.0
    assert not track.take_cpu(2.0, now=104.0)
    assert track.cpu_percent == 0.0


def test_looks_that_are_too_close_say_nothing_new() -> None:
    track = Track()
    track.take_cpu(0.0, now=0.0)
    track.take_cpu(1.0, now=1.0)
    track.take_cpu(1.01, now=1.01)
    assert track.cpu_percent == 100.0
    track.take_cpu(1.5, now=2.0)
    assert track.cpu_percent == 50.0


def test_time_used_stays_used() -> None:
    track = Track()
    track.take_cpu(5.0, now=0.0)
    assert not track.take_cpu(3.0, now=1.0)
    assert not track.take_cpu(None, now=2.0)
    assert track.cpu_seconds == 5.0


def test_an_unknown_usage_may_have_changed() -> None:
    assert Track().take_cpu(None, now=0.0)


@given(st.lists(st.tuples(_SIZES, _SIZES)))
def test_the_peak_never_shrinks(seen: list[tuple[int | None, int | None]]) -> None:
    track = Track()
    for now, peak in seen:
        before = track.peak_rss_bytes
        track.take_memory(now, peak)
        assert track.peak_rss_bytes == most(before, now, peak)


def test_history_is_short_and_knows_only_what_is_known() -> None:
    track = Track()
    track.remember(0.0)
    assert not track.history
    track.take_memory(1, None)
    for second in range(2 * HISTORY):
        track.take_cpu(float(second), now=float(second))
        track.remember(float(second))
    assert len(track.history) == HISTORY
    assert track.history[-1] == (2 * HISTORY - 1, 100.0, 1)


def test_freshness() -> None:
    track = Track()
    assert not track.is_fresh(0.0, 10.0)
    track.take_cpu(None, now=5.0)
    assert track.is_fresh(6.0, 1.0)
    assert not track.is_fresh(6.5, 1.0)


@given(st.lists(st.floats(0, 1e9)), st.integers(1, 50), st.floats(0, 1e9))
def test_a_line_of_blocks_has_its_width(values: list[float], width: int, full: float) -> None:
    line = sparkline(values, width, full)
    assert len(line) == width


def test_blocks() -> None:
    assert sparkline([0, 0.1, 50, 100, 900], 6, 100) == "  ▁▄██"
