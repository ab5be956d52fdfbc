"""When a process counts as ready."""

from __future__ import annotations

import pytest

from holdfast.model.lifecycle import Requested, Running
from holdfast.model.probes import readiness
from holdfast.model.probes.readiness import Readiness
from holdfast.model.process import HeldProcess
from holdfast.records import replace
from tests.model.made import ended, process


def marked(one: HeldProcess, *mark: object) -> HeldProcess:
    return replace(one, readiness=Readiness(one.started_at or 0.0, *mark))  # type: ignore[arg-type]


def test_nothing_to_be_ready_by() -> None:
    assert process(1).is_ready is None
    assert ended(1, 5.0).is_ready is None
    assert not readiness.is_open(process(1))


def test_not_known_yet_then_known() -> None:
    one = process(1, ready_port=80)
    assert one.is_ready is None
    assert readiness.is_open(one)
    assert marked(one, True, 3.0).is_ready is True
    assert marked(one, False).is_ready is False
    assert not readiness.is_open(marked(one, True, 3.0))
    assert readiness.is_open(marked(one, None, None, "port 80 is held by another program"))


def test_what_has_ended_is_not_ready_and_will_not_be() -> None:
    over = ended(1, 5.0, ready_log="x")
    assert over.is_ready is False
    assert marked(over, True, 4.5).is_ready is False
    assert not readiness.is_open(over)


def test_another_run_is_looked_at_anew() -> None:
    one = marked(process(1, ready_uptime=1.0), True, 3.0)
    again = replace(one, state=Running(77, 100.0))
    assert again.is_ready is None
    assert readiness.is_open(again)


def test_what_does_not_run_yet_is_not_looked_at() -> None:
    assert not readiness.is_open(process(1, Requested(), ready_port=80))


def test_times_count_from_the_start() -> None:
    one = process(100, ready_uptime=2.0, ready_timeout=5.0)
    assert (readiness.uptime_reached_at(one), readiness.gives_up_at(one)) == (102.0, 105.0)
    assert readiness.gives_up_at(process(1, ready_port=80)) is None


@pytest.mark.parametrize("attempt", [0, 1, 5, 1000, 10**9])
def test_the_pause_between_two_checks_is_bounded(attempt: int) -> None:
    assert 0.01 <= readiness.pause(attempt) <= 0.05
    assert readiness.pause(attempt) <= readiness.pause(attempt + 1)
