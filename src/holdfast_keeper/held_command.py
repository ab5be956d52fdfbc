"""One held command: its bundle, its descriptors and its state."""

from __future__ import annotations

import os
from typing import Any

from holdfast_keeper import bundle, kernel
from holdfast_keeper.bundle import Slot
from holdfast_keeper.connections import Descriptors
from holdfast_keeper.journal import Input, Journal, PipeInput, TerminalInput
from holdfast_keeper.kernel import Tree, TreeMember
from holdfast_keeper.output import LostPump, PipePump, Pump, Quota, Segments, TerminalPump


class HeldCommand:
    """The parts of one held command. Its methods never wait."""

    def __init__(
        self,
        process_id: str,
        directory: str,
        state: bundle.BundleState,
        fds: Descriptors,
        quota: Quota,
        is_new: bool = False,
    ) -> None:
        assert state.born is not None
        self.id = process_id
        self.directory = directory
        self.is_new = is_new
        self.born: Slot = state.born
        self.stop = state.stop
        self.exit = state.exit
        self.fds = fds
        self.pumps: dict[str, Pump] = _pumps(self, quota, is_new)
        self.input: Input | None = _input(fds)
        #: Whether the daemon knows that its output is complete.
        self.is_complete_known = False
        #: Why the last attempt on this bundle failed; the next one is due. None normally.
        self.quarantine: str | None = None
        self.failed_at = 0.0
        self.retry_pause = 0.0
        self._is_stop_written = True
        #: Streams whose output waits in the pipe because the disk is full.
        self.full_streams: set[str] = set()

    @property
    def tree(self) -> Tree:
        return tree_of(self.id, self.born)

    @property
    def trouble(self) -> str | None:
        """Why its output does not advance; None normally."""
        if self.quarantine is not None:
            return "quarantined"
        return "disk_full" if self.full_streams else None

    @property
    def is_terminal(self) -> bool:
        return bool(self.born["pty"])

    @property
    def is_complete(self) -> bool:
        """The exit is recorded and nothing can write to the output any more."""
        return self.exit is not None and all(pump.closed for pump in self.pumps.values())

    def record_stop(self, stop: Slot) -> None:
        """Where it raises OSError, the record is in memory, and is written before the exit."""
        self.stop, self._is_stop_written = stop, False
        bundle.write_slot(self.directory, bundle.STOP, stop)
        self._is_stop_written = True

    def record_exit(self, exit_: Slot) -> None:
        if self.stop is not None and not self._is_stop_written:
            self.record_stop(self.stop)
        bundle.write_slot(self.directory, bundle.EXIT, exit_)
        self.exit = exit_

    def report(self) -> dict[str, Any]:
        streams = {
            name: {"first": pump.log.first, "end": pump.log.end, "closed": pump.closed}
            for name, pump in self.pumps.items()
        }
        return {
            "id": self.id,
            "born": self.born,
            "stop": self.stop,
            "exit": self.exit,
            "streams": streams,
            "stdin": self._stdin_report(),
            "trouble": self.trouble,
        }

    def close_input(self) -> list[str]:
        """Close the command's stdin. Returns the names of the descriptors that every holder must close, too."""
        self.input = None
        return self.close_fds("stdin", "journal", "inr", "inw")

    def close_fds(self, *names: str) -> list[str]:
        gone = [name for name in names if name in self.fds]
        for name in gone:
            os.close(self.fds.pop(name))
        return gone

    def close(self, quota: Quota) -> int:
        """Returns how many bytes its log has."""
        held = sum(pump.log.held for pump in self.pumps.values())
        for pump in self.pumps.values():
            pump.log.close()
            quota.retire(pump.log)
        self.close_fds(*list(self.fds))
        return held

    def _stdin_report(self) -> dict[str, Any] | None:
        if self.input is None:
            return None
        journal = self.input.journal
        return {"open": not journal.is_sealed, "accepted": journal.accepted, "consumed": journal.passed_on}


def new_report(process_id: str, born: Slot) -> dict[str, Any]:
    """The report of a command that has just started."""
    has_input = born["stdin"]
    return {
        "id": process_id,
        "born": born,
        "stop": None,
        "exit": None,
        "streams": {name: {"first": 0, "end": 0, "closed": False} for name in _stream_names(born)},
        "stdin": {"open": True, "accepted": 0, "consumed": 0} if has_input else None,
        "trouble": None,
    }


def finished_report(process_id: str, directory: str) -> dict[str, Any] | None:
    """The report of an archived bundle; None when there is no such bundle."""
    state = bundle.read_state(directory)
    if state is None or state.born is None:
        return None
    streams = {}
    for name in _stream_names(state.born):
        found = bundle.segments(directory, name)
        first = found[0].start if found else 0
        end = found[-1].start + found[-1].size if found else 0
        streams[name] = {"first": first, "end": end, "closed": True}
    return {
        "id": process_id,
        "born": state.born,
        "stop": state.stop,
        "exit": state.exit,
        "streams": streams,
        "stdin": None,
        "trouble": None,
    }


def _stream_names(born: Slot) -> tuple[str, ...]:
    return ("out", "err") if born["split"] else ("out",)


def groups_of(born: Slot) -> set[str]:
    """The cgroups that a command is in."""
    groups = {born["group"], *born.get("limits", {}).values()}
    return {group for group in groups if group is not None}


def tree_of(process_id: str, born: Slot) -> Tree:
    return Tree(process_id, TreeMember(born["pid"], born["start"]), born["group"], born["boot"])


def reopen(directory: str, born: Slot, fds: Descriptors) -> None:
    """Open again what can be opened without a holder: the process and the FIFOs."""
    if "pidfd" not in fds and born["boot"] == kernel.boot_id():
        pidfd = kernel.open_process(born["pid"], born["start"])
        if pidfd is not None:
            fds["pidfd"] = pidfd
    if not born["pty"]:
        for name in ("out", "err") if born["split"] else ("out",):
            if name not in fds:
                fds[name] = open_fifo(directory, name)


def open_fifo(directory: str, name: str) -> int:
    return os.open(f"{directory}/{bundle.FIFO[name]}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _pumps(command: HeldCommand, quota: Quota, is_new: bool) -> dict[str, Pump]:
    fds, cap, directory = command.fds, int(command.born["cap"]), command.directory
    if command.is_terminal:
        log = Segments(directory, "out", cap, quota, is_new)
        if "pty" not in fds:
            return {"out": LostPump(log)}
        return {"out": TerminalPump(fds["pty"], (fds["outr"], fds["outw"]), log)}
    names = ("out", "err") if command.born["split"] else ("out",)
    return {
        name: PipePump(fds[name], Segments(directory, name, cap // len(names), quota, is_new))
        for name in names
        if name in fds
    }


def _input(fds: Descriptors) -> Input | None:
    if "journal" not in fds:
        return None
    journal = Journal(fds["journal"])
    if "pty" in fds:
        return TerminalInput(journal, fds["pty"], (fds["inr"], fds["inw"]))
    return PipeInput(journal, fds["stdin"]) if "stdin" in fds else None
