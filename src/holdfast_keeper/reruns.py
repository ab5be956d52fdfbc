"""Running an ended command again: the conditions, and the answer to a repeated request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast_keeper import bundle
from holdfast_keeper.connections import Connection, Refusal
from holdfast_keeper.held_command import HeldCommand
from holdfast_keeper.starter import Program, StartRequest

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper


class NotYet(Exception):
    """The request cannot be decided yet: it is tried again."""


def rerun(keeper: Keeper, connection: Connection, message: dict[str, Any]) -> dict[str, Any] | None:
    """Run it again as run `run`. Answered when it runs; at once if it is that run already. Raises Refusal, NotYet."""
    process_id, run, streak = message["id"], int(message["run"]), int(message.get("streak") or 0)
    report = keeper.report(process_id)
    if report is None:
        raise Refusal("not_found", f"no process {process_id}")
    last = run_of(report["born"])
    if run == last:
        return report
    if run != last + 1:
        raise Refusal("bad_value", f"the last run of {process_id} was {last}, so the next cannot be {run}")
    if report["exit"] is None:
        raise Refusal("not_now", f"{process_id} still runs")
    if (report["stop"] or {}).get("late") and not message.get("despite_stop"):
        raise Refusal("stopped", f"{process_id} was stopped for good")
    if keeper.stopper.is_stopping(process_id):
        raise NotYet  # without cgroups, the stop of the last run could signal the next one
    if process_id in keeper.commands:
        _archive_last_run(keeper, keeper.commands[process_id])
    spec = _spec(keeper, message)
    before = keeper.report(process_id)
    # The offset of this run's first byte in each stream.
    begins = {name: extent["end"] for name, extent in (before or report)["streams"].items()}
    born = {"run": run, "streak": streak, "begins": begins}
    program = Program.of_spec(spec)
    keeper.starter.rerun(StartRequest(process_id, spec, program, [(connection, message["rid"])], before, born))
    return None


def run_of(born: bundle.Slot) -> int:
    return int(born.get("run", 0))


def _archive_last_run(keeper: Keeper, command: HeldCommand) -> None:
    """Archive a bundle whose output leftovers may still hold open: what they write from now on is discarded."""
    if any(pump.drain() > pump.log.end for pump in command.pumps.values()):
        raise Refusal("disk_full", "the disk is full: its last output cannot be written")
    for pump in command.pumps.values():
        pump.closed = True
    keeper.exits.archive_if_complete(command)
    if keeper.is_current(command):
        raise Refusal("disk_full", "the disk is full: it cannot be run again")


def _spec(keeper: Keeper, message: dict[str, Any]) -> dict[str, Any]:
    """The spec of its first run, with the last size of its terminal."""
    directory = bundle.find(keeper.dir.path, message["id"])
    try:
        with open(f"{directory}/{bundle.SPEC}", "rb") as file:
            spec = dict(json.load(file))
    except (OSError, ValueError) as broken:
        raise Refusal("failed_start", f"the spec in its bundle cannot be read: {broken}") from broken
    return {**spec, **{key: int(message[key]) for key in ("cols", "rows") if message.get(key) is not None}}
