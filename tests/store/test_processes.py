"""Rows and processes say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.model.lifecycle import (
    Ended,
    Exited,
    Lost,
    NeverRan,
    Queued,
    Requested,
    Restarting,
    Running,
    Signaled,
    Skipped,
    State,
    Stopping,
    StopRequest,
    Unseen,
)
from holdfast.model.probes.readiness import Readiness
from holdfast.model.probes.stalls import Stall
from holdfast.model.process import Leftover, Meta, StreamExtent
from holdfast.records import replace
from holdfast.store import rows
from holdfast.store.db import open_db
from tests.model.made import process

STOP = StopRequest("ünder · agent", "killed", 3.5, forced=True)
STATES: list[State] = [
    Requested(),
    Queued(),
    Ended(Skipped("proc_000000000001"), 4.0, ended_at=4.0),
    Running(7, 1.25),
    Stopping(7, 1.25, STOP),
    Ended(Exited(42), 4.0, 7, 1.25, 4.0, STOP),
    Ended(Signaled(9), 4.0, 7, 1.25, 4.0),
    Ended(Unseen(), 4.0, 7, 1.25),
    Ended(Lost(), 4.0),
    Ended(NeverRan(), 4.0, ended_at=4.0),
    Restarting(Ended(Exited(42), 4.0, 7, 1.25, 4.0, STOP), 9.5),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
def test_a_row_gives_back_the_process(state: State) -> None:
    one = replace(
        process(1, state, name="web", task="t", deadline=5.0, pty=True, cols=80, rows=24, success_codes=(0, 3)),
        streams={"out": StreamExtent(10, 20, True), "err": StreamExtent(0, 3)},
        exit_offset=15,
        leftovers=(Leftover(12, 34567),),
        cols=100,
        rows=30,
        deadline_notified=True,
        run=3,
        streak=2,
        gave_up=True,
        readiness=Readiness(1.25, True, 2.5, "troubled", {"out": 7}),
        stall=Stall(1.25, 2.0, 100, 0.5, 1.5, "S (sleeping)"),
    )
    assert rows.from_row(rows.to_row(one)) == one


def test_meta_survives_json_and_ignores_what_a_newer_release_added() -> None:
    meta = process(1, name="web").meta
    assert Meta.from_json({**meta.to_json(), "colour": "green"}) == meta


def test_a_row_that_makes_no_sense_counts_as_missing(tmp_path: Path) -> None:
    connection, _ = open_db(str(tmp_path / "store.db"))
    good = process(1)
    rows.put_process(connection, good.id, good)
    for number, (meta, state) in enumerate([("{", "{}"), ("{}", "{}"), ("[]", "[]"), ("{}", '{"is":"dancing"}')]):
        row = (f"proc_{number:012x}ff", "s", meta, state, "{}")
        connection.execute("INSERT INTO processes (id, session, meta, state, marks) VALUES (?, ?, ?, ?, ?)", row)
    assert [one.id for one in rows.load_processes(connection)] == [good.id]
    connection.close()
