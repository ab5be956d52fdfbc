"""The registry: how many processes may run at once, and whom it names when they are too many."""

from __future__ import annotations

import pytest

from holdfast.daemon.core.registry import Registry
from holdfast.errors import LimitReached
from tests.model.made import process


def registry_of(count: int) -> Registry:
    registry = Registry()
    for number in range(count):
        registry.put(process(number, session="own" if number % 2 else "other"))
    return registry


def test_at_the_limit_the_running_ones_are_named() -> None:
    registry_of(2).check_limit(3)
    full = registry_of(3)
    with pytest.raises(LimitReached) as refused:
        full.check_limit(3)
    assert all(process_id in refused.value.message for process_id in full.all)


def test_many_are_counted() -> None:
    with pytest.raises(LimitReached, match=r"100 processes run, 100 may: .* and 80 more"):
        registry_of(100).check_limit(100)


def test_a_refusal_names_no_process_that_the_caller_may_not_see() -> None:
    full = registry_of(5)
    with pytest.raises(LimitReached, match="5 processes run, 5 may") as refused:
        full.check_limit(5, lambda session: session == "own")
    named = [process_id for process_id in full.all if process_id in refused.value.message]
    assert named == [process(1).id, process(3).id]
