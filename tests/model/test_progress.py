"""Progress, every so often."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.notices.progress import NewOutput, OutputSpan, Progress, begin, checked
from tests.model.test_watching import ANY_JSON

YEAR = 365 * 86400.0


def test_one_for_each_interval_with_what_is_new() -> None:
    state = begin(0.0, 60.0)
    assert checked(state, {"out": 100}, 59.9, 60.0) == (state, None)
    state, news = checked(state, {"out": 100}, 60.0, 60.0)
    assert news == NewOutput({"out": OutputSpan(0, 100)})
    state, news = checked(state, {"out": 250}, 120.0, 60.0)
    assert news == NewOutput({"out": OutputSpan(100, 250)}) and news.new_bytes == 150


def test_without_new_output_there_is_no_notice() -> None:
    state, _ = checked(begin(0.0, 60.0), {"out": 100}, 60.0, 60.0)
    state, news = checked(state, {"out": 100}, 120.0, 60.0)
    assert news is None and state == Progress(180.0, {"out": 100})
    assert checked(state, {"out": 101}, 180.0, 60.0)[1] == NewOutput({"out": OutputSpan(100, 101)})


def test_a_process_that_never_writes_makes_no_progress_notice() -> None:
    state = begin(0.0, 10.0)
    for at in range(0, 1000, 10):
        state, news = checked(state, {"out": 0}, float(at), 10.0)
        assert news is None


def test_each_stream_has_its_own_place() -> None:
    state, news = checked(begin(0.0, 1.0), {"out": 5, "err": 0}, 1.0, 1.0)
    assert news == NewOutput({"out": OutputSpan(0, 5)})
    assert checked(state, {"out": 5, "err": 9}, 2.0, 1.0)[1] == NewOutput({"err": OutputSpan(0, 9)})


def test_output_of_earlier_runs_is_not_new() -> None:
    assert checked(begin(0.0, 1.0, {"out": 70}), {"out": 75}, 1.0, 1.0)[1] == NewOutput({"out": OutputSpan(70, 75)})


def test_missed_output_is_reported_once_and_the_next_an_interval_later() -> None:
    state, news = checked(begin(0.0, 60.0), {"out": 9}, 1000.0, 60.0)
    assert news is not None and state.next_at == 1060.0


@pytest.mark.parametrize("back", [1.0, 1000.0, YEAR])
def test_a_clock_that_is_set_back_delays_by_one_interval_at_most(back: float) -> None:
    state, news = checked(begin(5000.0, 60.0), {"out": 9}, 5000.0 - back, 60.0)
    assert news is None and state.next_at == 5060.0 - back
    assert checked(state, {"out": 9}, state.next_at, 60.0)[1] is not None


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 50)), max_size=50))
def test_every_byte_is_reported_once_and_no_two_reports_come_within_an_interval(steps: list[tuple[float, int]]) -> None:
    state, now, written, told, last = begin(0.0, 30.0), 0.0, 0, 0, 0.0
    for pause, more in [*steps, (30.0, 1)]:
        now, written = now + pause, written + more
        state, news = checked(state, {"out": written}, now, 30.0)
        state = Progress.from_json(json.loads(json.dumps(state.to_json())))
        if news is not None:
            assert news.spans == {"out": OutputSpan(told, written)} and written > told
            assert now - last >= 30.0 - 1e-6
            told, last = written, now
    assert checked(state, {"out": written}, now + 30.0, 30.0)[1] == (
        NewOutput({"out": OutputSpan(told, written)}) if written > told else None
    )


@given(ANY_JSON | st.dictionaries(st.sampled_from(["next_at", "told"]), ANY_JSON))
def test_any_written_state_can_be_read_and_continued(value: object) -> None:
    state = Progress.from_json(value)
    state, _ = checked(state, {"out": 10}, 1000.0, 60.0)
    assert state.next_at <= 1060.0
    json.dumps(state.to_json(), allow_nan=False)
