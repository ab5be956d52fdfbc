"""When a process counts as stalled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.lifecycle import Running
from holdfast.model.probes import stalls
from holdfast.model.probes.stalls import ActivitySample, Stall, StallWatch
from holdfast.records import replace
from tests.model.made import ended, process

LIMIT = 10.0


def after(*samples: ActivitySample) -> StallWatch:
    watch = StallWatch.begin(samples[0])
    for sample in samples[1:]:
        watch = stalls.observe(watch, sample)
    return watch


def is_stalled(*samples: ActivitySample) -> bool:
    return stalls.is_stalled(after(*samples), LIMIT)


def test_quiet_and_idle_for_long_enough() -> None:
    assert not is_stalled(ActivitySample(0, 5, 1.0), ActivitySample(9.9, 5, 1.0))
    assert is_stalled(ActivitySample(0, 5, 1.0), ActivitySample(5, 5, 1.0), ActivitySample(10, 5, 1.0))


def test_output_begins_anew() -> None:
    assert not is_stalled(ActivitySample(0, 5, 1.0), ActivitySample(6, 6, 1.0), ActivitySample(12, 6, 1.0))
    assert is_stalled(ActivitySample(0, 5, 1.0), ActivitySample(6, 6, 1.0), ActivitySample(16, 6, 1.0))


def test_work_counts_as_much_as_output() -> None:
    assert not is_stalled(ActivitySample(0, 0, 1.0), ActivitySample(6, 0, 1.5), ActivitySample(12, 0, 1.5))


def test_a_short_burst_after_a_long_silence_counts() -> None:
    assert not is_stalled(ActivitySample(0, 0, 1.0), ActivitySample(500, 0, 1.0), ActivitySample(502, 0, 1.2))


def test_steady_work_in_small_steps_counts() -> None:
    steps = [ActivitySample(step * 0.1, 0, step * 0.005) for step in range(200)]
    assert not is_stalled(*steps)


def test_the_timers_of_a_program_that_waits_are_no_work() -> None:
    steps = [ActivitySample(step * 1.0, 0, step * 0.002) for step in range(20)]
    assert is_stalled(*steps)


def test_the_end_of_a_member_is_a_sign_of_life() -> None:
    assert not is_stalled(ActivitySample(0, 0, 3.0), ActivitySample(6, 0, 1.0), ActivitySample(12, 0, 1.0))


def test_what_cannot_be_measured_is_not_called_stalled() -> None:
    assert not is_stalled(*(ActivitySample(float(at), 0, None) for at in range(100)))


def test_an_episode_goes_on_over_a_crash_of_ours_unless_something_happened() -> None:
    watch = stalls.resumed(Stall(1.0, 2.0, 100, 0.5), LIMIT, now=50.0)
    assert stalls.is_stalled(watch, LIMIT)
    assert stalls.is_stalled(stalls.observe(watch, ActivitySample(51.0, 100, 0.5)), LIMIT)
    assert not stalls.is_stalled(stalls.observe(watch, ActivitySample(51.0, 101, 0.5)), LIMIT)
    assert not stalls.is_stalled(stalls.observe(watch, ActivitySample(51.0, 100, 0.9)), LIMIT)


def test_a_mark_counts_for_its_run_and_while_that_lives() -> None:
    mark = Stall(1.0, 2.0, 100, 0.5)
    stalled = replace(process(1), stall=mark)
    assert stalls.mark_of(stalled) == mark
    assert stalls.mark_of(replace(stalled, state=Running(5, 99.0))) is None
    assert stalls.mark_of(replace(ended(1, 2.0), stall=mark)) is None


@given(st.lists(st.tuples(st.floats(0.01, 5), st.integers(0, 3), st.floats(0, 0.5)), min_size=1, max_size=40))
def test_quiet_never_lasts_longer_than_since_the_last_output(steps: list[tuple[float, int, float]]) -> None:
    at, written, used, last_change = 0.0, 0, 0.0, 0.0
    watch = StallWatch.begin(ActivitySample(at, written, used))
    for pause, more, work in steps:
        at, written, used = at + pause, written + more, used + work
        last_change = at if more else last_change
        watch = stalls.observe(watch, ActivitySample(at, written, used))
        assert 0 <= watch.quiet <= at - last_change
