"""Ends that are under way: one ladder per process, its askers, and a record that a restarted keeper goes on from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from holdfast_keeper import bundle, points, protocol
from holdfast_keeper.control import Connection
from holdfast_keeper.hold import Hold, tree_of
from holdfast_keeper.ladder import Ladder
from holdfast_keeper.tree import Tree

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

Asker = tuple[Connection, Any]


class Stopper:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._ends: dict[str, _End] = {}

    @property
    def is_busy(self) -> bool:
        return bool(self._ends)

    def is_ending(self, process_id: str) -> bool:
        return process_id in self._ends

    def stop(self, asker: Asker, process_id: str, stop: dict[str, Any], late: bool = False) -> bool:
        """End a tree; the asker is answered when it is gone. False when there is no such process.

        Who asked first, and why, is recorded before anything is signalled and never overwritten; only a stop that was
        for a restart gives way to one for good. With `late` it is recorded also when the command has ended: then it
        shall not be run again.
        """
        now = time.time()
        end = self._ends.get(process_id)
        tree = self._tree(process_id)
        if tree is None:
            return False
        self._record(process_id, {**stop, "at": now, "forced": False}, late)
        if end is not None:
            end.ladder.hurry(stop["grace"], now, stop["quiet"])
        else:
            end = self._ends[process_id] = _End(Ladder(tree, stop["signal"], stop["grace"], now, quiet=stop["quiet"]))
        end.askers.append(asker)
        self.look(process_id)
        return True

    def resume(self, hold: Hold) -> None:
        """Go on with an end that a predecessor began."""
        stop = hold.stop
        if stop is not None and hold.exit is None:
            quiet = stop.get("quiet", 0.0)
            ladder = Ladder(hold.tree, stop["signal"], stop["grace"], stop["at"], stop["forced"], quiet)
            self._ends[hold.id] = _End(ladder)
            self._keeper.loop.after(0, lambda: self.look(hold.id))

    def look(self, process_id: str) -> None:
        """Take the next step of an end, if there is one under way."""
        end = self._ends.get(process_id)
        if end is None:
            return
        was_forced = end.ladder.forced
        pause = end.ladder.step(time.time())
        if end.ladder.forced and not was_forced:
            self._record_force(process_id)
        hold = self._keeper.holds.get(process_id)
        if pause is None and not end.ladder.survivors and hold is not None and hold.exit is None:
            pause = 0.01 if end.patience() else None
        if pause is not None:
            self._again(end, process_id, pause)
            return
        del self._ends[process_id]
        self._answer(end, process_id)

    def _again(self, end: _End, process_id: str, pause: float) -> None:
        if end.timer is not None:
            end.timer.cancel()
        end.timer = self._keeper.loop.after(pause, lambda: self.look(process_id))

    def _answer(self, end: _End, process_id: str) -> None:
        answer = {
            "forced": end.ladder.forced,
            "survivors": end.ladder.survivors,
            "report": self._keeper.report(process_id),
        }
        for connection, rid in end.askers:
            connection.answer(rid, answer)
        self._keeper.sweep_groups()
        self._keeper.end_if_done()

    def _record(self, process_id: str, stop: dict[str, Any], late: bool) -> None:
        hold = self._keeper.holds.get(process_id)
        if hold is not None:
            if _counts(hold.stop, stop) and (hold.exit is None or late):
                hold.record_stop(stop if hold.exit is None else {**stop, "late": True})
                points.reach("stop-recorded")
            return
        directory = self._keeper.place.done(process_id)
        state = bundle.read_state(directory)
        if late and state is not None and _counts(state.stop, stop):
            bundle.write_slot(directory, bundle.STOP, {**stop, "late": True})
            points.reach("stop-recorded")

    def _record_force(self, process_id: str) -> None:
        """Also for what the command left behind when it obeyed; but not when nobody asked for its end."""
        hold = self._keeper.holds.get(process_id)
        if hold is not None:
            if hold.stop is not None:
                hold.record_stop({**hold.stop, "forced": True})
            return
        directory = self._keeper.place.done(process_id)
        state = bundle.read_state(directory)
        if state is not None and state.stop is not None:
            bundle.write_slot(directory, bundle.STOP, {**state.stop, "forced": True})

    def _tree(self, process_id: str) -> Tree | None:
        hold = self._keeper.holds.get(process_id)
        if hold is not None:
            return hold.tree
        state = bundle.read_state(self._keeper.place.done(process_id))
        return tree_of(process_id, state.born) if state is not None and state.born is not None else None


def _counts(before: dict[str, Any] | None, stop: dict[str, Any]) -> bool:
    """Whether a stop is to be recorded beside what was recorded before."""
    return before is None or (before["reason"] == protocol.RESTART != stop["reason"])


class _End:
    def __init__(self, ladder: Ladder) -> None:
        self.ladder = ladder
        self.askers: list[Asker] = []
        self.timer: Any = None
        #: Looks at an empty tree whose exit is not recorded yet: the kernel is about to say it.
        self._looks = 300

    def patience(self) -> bool:
        self._looks -= 1
        return self._looks > 0
