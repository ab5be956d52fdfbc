"""What a keeper's report says of a process."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

from holdfast.daemon.core.registry import Registry
from holdfast.daemon.core.supervisor import Supervisor, applied, asker
from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.model.events import Event
from holdfast.model.lifecycle import Requested, Running, Stopping, end_signal, exit_code, reason, stop_of
from holdfast.model.process import HeldProcess, Leftover, StreamExtent
from holdfast.store.store import Store
from holdfast_keeper.bundle import encode_slot
from tests.model.made import process


def report(**parts: Any) -> dict[str, Any]:
    return {
        "id": process(1).id,
        "born": {"pid": 7, "start": 1, "boot": "b", "at": 10.0},
        "stop": None,
        "exit": None,
        "streams": {"out": {"first": 5, "end": 9, "closed": False}},
        "stdin": {"open": True, "accepted": 0, "consumed": 0},
        "trouble": None,
        **parts,
    }


STOP = {"by": "me", "reason": "killed", "at": 11.0, "signal": 15, "grace": 10.0, "forced": False}
EXIT = {"code": 42, "signal": None, "at": 12.0, "ends": {"out": 8}, "leftovers": [[99, 1234]], "leftover_count": 1}


def test_a_running_one_runs() -> None:
    one = applied(process(1, Requested()), report())
    assert one.state == Running(7, 10.0)
    assert (one.streams, one.stdin_open) == ({"out": StreamExtent(5, 9, False)}, True)


def test_one_that_was_asked_to_end_is_stopping() -> None:
    assert isinstance(applied(process(1), report(stop=STOP)).state, Stopping)


def test_an_ended_one_has_the_kernels_code_and_who_had_asked() -> None:
    one = applied(process(1), report(stop={**STOP, "forced": True}, exit=EXIT))
    assert (reason(one.state), exit_code(one.state), end_signal(one.state)) == ("killed", 42, None)
    assert (stop := stop_of(one.state)) is not None
    assert (stop.by, stop.forced) == ("me", True)
    assert (one.exit_offset, one.leftovers, one.stdin_open) == (8, (Leftover(99, 1234),), False)


def test_an_end_by_the_clock_names_no_caller() -> None:
    one = applied(process(1), report(stop={**STOP, "by": "", "reason": "deadline"}, exit=EXIT))
    assert (stop := stop_of(one.state)) is not None
    assert (stop.by, reason(one.state)) == (None, "deadline")


def test_what_we_believed_before_does_not_colour_it() -> None:
    believed = applied(process(1), report(stop=STOP))
    assert stop_of(applied(believed, report(exit=EXIT)).state) is None


def test_the_name_of_any_session_fits_into_the_record_of_a_stop() -> None:
    for session in ("a" * 256, "ü" * 256, "😀" * 256, '"' * 256):
        encode_slot({**STOP, "by": asker(session)})
    assert asker("a" * 256) == "a" * 256
    assert json.loads(json.dumps(asker("😀" * 256))).startswith("😀")


def test_a_stop_for_a_restart_is_no_end() -> None:
    saved: list[list[str]] = []

    def save_soon(process: HeldProcess, happened: list[Event], within: float = 0.0) -> None:
        saved.append([one.topic for one in happened])

    async def reported() -> HeldProcess | None:
        registry = Registry()
        registry.put(process(1))
        supervisor = Supervisor(registry, cast(Store, SimpleNamespace(save_soon=save_soon)), BackgroundTasks())
        ended = report(stop={**STOP, "reason": "restart"}, exit=EXIT)
        supervisor.apply_fact(None, {"fact": "ended", "id": process(1).id, "report": ended})
        await supervisor.restarts_changed.wait()
        return registry.get(process(1).id)

    now = asyncio.run(reported())
    assert now is not None
    assert now.is_restarting
    assert saved == [["process.restarting"]]


def test_a_keeper_of_a_place_reports_its_own_processes_alone() -> None:
    here = process(1)
    registry = Registry()
    registry.put(here)
    supervisor = Supervisor(registry, cast(Store, None), BackgroundTasks())
    ended = report(exit=EXIT)
    supervisor.apply_fact("elsewhere", {"fact": "ended", "id": here.id, "report": ended})
    supervisor.apply_fact("elsewhere", {"fact": "ended", "id": process(2).id, "report": ended})
    assert registry.get(here.id) is here
