"""Ends that are under way: one ladder per process, its askers, and a record that a restarted keeper goes on from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from holdfast_keeper import bundle, failpoints, protocol
from holdfast_keeper.control import Connection
from holdfast_keeper.escalation import Escalation
from holdfast_keeper.held_command import HeldCommand, tree_of
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
            end.escalation.hurry(stop["grace"], now, stop["quiet"])
        else:
            end = self._ends[process_id] = _End(
                Escalation(tree, stop["signal"], stop["grace"], now, quiet=stop["quiet"])
            )
        end.askers.append(asker)
        self.look(process_id)
        return True

    def resume(self, command: HeldCommand) -> None:
        """Go on with an end that a predecessor began."""
        stop = command.stop
        if stop is not None and command.exit is None:
            quiet = stop.get("quiet", 0.0)
            escalation = Escalation(command.tree, stop["signal"], stop["grace"], stop["at"], stop["forced"], quiet)
            self._ends[command.id] = _End(escalation)
            self._keeper.loop.after(0, lambda: self.look(command.id))

    def look(self, process_id: str) -> None:
        """Take the next step of an end, if there is one under way."""
        end = self._ends.get(process_id)
        if end is None:
            return
        was_forced = end.escalation.forced
        pause = end.escalation.step(time.time())
        if end.escalation.forced and not was_forced:
            self._record_force(process_id)
        command = self._keeper.commands.get(process_id)
        if pause is None and not end.escalation.survivors and command is not None and command.exit is None:
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
            "forced": end.escalation.forced,
            "survivors": end.escalation.survivors,
            "report": self._keeper.report(process_id),
        }
        for connection, rid in end.askers:
            connection.answer(rid, answer)
        self._keeper.sweep_groups()
        self._keeper.end_if_done()

    def _record(self, process_id: str, stop: dict[str, Any], late: bool) -> None:
        command = self._keeper.commands.get(process_id)
        if command is not None:
            if _counts(command.stop, stop) and (command.exit is None or late):
                command.record_stop(stop if command.exit is None else {**stop, "late": True})
                failpoints.reach("stop-recorded")
            return
        directory = self._keeper.dir.done(process_id)
        state = bundle.read_state(directory)
        if late and state is not None and _counts(state.stop, stop):
            bundle.write_slot(directory, bundle.STOP, {**stop, "late": True})
            failpoints.reach("stop-recorded")

    def _record_force(self, process_id: str) -> None:
        """Also for what the command left behind when it obeyed; but not when nobody asked for its end."""
        command = self._keeper.commands.get(process_id)
        if command is not None:
            if command.stop is not None:
                command.record_stop({**command.stop, "forced": True})
            return
        directory = self._keeper.dir.done(process_id)
        state = bundle.read_state(directory)
        if state is not None and state.stop is not None:
            bundle.write_slot(directory, bundle.STOP, {**state.stop, "forced": True})

    def _tree(self, process_id: str) -> Tree | None:
        command = self._keeper.commands.get(process_id)
        if command is not None:
            return command.tree
        state = bundle.read_state(self._keeper.dir.done(process_id))
        return tree_of(process_id, state.born) if state is not None and state.born is not None else None


def _counts(before: dict[str, Any] | None, stop: dict[str, Any]) -> bool:
    """Whether a stop is to be recorded beside what was recorded before."""
    return before is None or (before["reason"] == protocol.RESTART != stop["reason"])


class _End:
    def __init__(self, escalation: Escalation) -> None:
        self.escalation = escalation
        self.askers: list[Asker] = []
        self.timer: Any = None
        #: Looks at an empty tree whose exit is not recorded yet: the kernel is about to say it.
        self._looks = 300

    def patience(self) -> bool:
        self._looks -= 1
        return self._looks > 0
