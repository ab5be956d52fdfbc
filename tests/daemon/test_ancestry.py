"""Whether a caller descends from a command that was judged, with real processes as callers."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.daemon.core.registry import Registry
from holdfast.daemon.listener.ancestry import CallerAncestry
from holdfast.machine import proc
from holdfast.model.lifecycle import Running
from holdfast.places.base import ExecutionPlace
from tests.model import made

NO_PID = 2**31 - 1


def ancestry(judged: int | None, keepers: frozenset[int] = frozenset()) -> CallerAncestry:
    """With one judged command, which has this pid."""
    registry = Registry()
    if judged is not None:
        registry.put(made.process(1, Running(judged, 1.0), session="bound", gated=True))
    place = SimpleNamespace(keeper_pids=keepers, ancestors=proc.ancestors, is_alive=proc.is_alive)
    return CallerAncestry(registry, cast(ExecutionPlace, place))


@pytest.fixture
def child() -> Any:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process
        process.kill()


def test_a_descendant_of_a_judged_command_is_bound_to_its_session(child: Any) -> None:
    assert ancestry(os.getpid()).of(child.pid) == ("bound",)
    assert ancestry(child.pid).of(child.pid) == ("bound",)


def test_a_caller_from_elsewhere_is_not_bound(child: Any) -> None:
    assert ancestry(child.pid).of(os.getppid()) is None
    assert ancestry(NO_PID).of(child.pid) is None
    assert ancestry(NO_PID).of(None) is None


def test_what_the_keeper_adopted_is_bound_to_an_unknown_session(child: Any) -> None:
    assert ancestry(NO_PID, frozenset({os.getpid()})).of(child.pid) == (None,)


def test_a_caller_that_died_is_bound_where_a_command_was_ever_judged() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    assert ancestry(NO_PID).of(dead.pid) == (None,)
    assert ancestry(dead.pid).of(dead.pid) == ("bound",)
    assert ancestry(None).of(dead.pid) is None


def test_a_command_that_the_daemon_runs_for_a_judged_one_is_bound_as_well(child: Any) -> None:
    found = ancestry(NO_PID)
    process = next(iter(found._registry.all.values()))
    with found.helping(child.pid, process):
        assert found.of(child.pid) == ("bound",)
    assert found.of(child.pid) is None  # another process has the pid of the helper that ended
    with found.helping(child.pid, replace(process, meta=replace(process.meta, gated=False))):
        assert found.of(child.pid) is None
