"""Where a caller comes from, with real processes that connect to a real socket."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.daemon.core.registry import Registry
from holdfast.daemon.listener.accepting import BoundOrigin, CallerAncestry
from holdfast.machine import proc
from holdfast.model.lifecycle import Requested, Running
from holdfast.places.base import CallerMarks, ExecutionPlace
from holdfast.records import replace
from tests.model import made

NO_PID = 2**31 - 1
UNMARKED = CallerMarks(None, None)
BOUND = BoundOrigin("bound", True)

#: Connects, then lives until its input ends.
CALLER = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(flush=True); input()"


def found(
    held: int = NO_PID,
    keepers: frozenset[int] = frozenset(),
    marks: CallerMarks | None = UNMARKED,
    gated: bool = True,
    group: str | None = None,
) -> CallerAncestry:
    """With one held command, which has this pid."""
    registry = Registry()
    registry.put(replace(made.process(1, Running(held, 1.0), session="bound", gated=gated), group=group))
    place = SimpleNamespace(
        keeper_pids=keepers, ancestors=proc.ancestors, is_alive=proc.is_alive, marks=lambda pid: marks
    )
    return CallerAncestry(registry, cast(ExecutionPlace, place))


class AcceptedCaller:
    def __init__(self, process: subprocess.Popen[str], connection: socket.socket) -> None:
        self.process = process
        self.pid = process.pid
        self.connection = connection

    def origin(self, ancestry: CallerAncestry) -> BoundOrigin | None:
        return ancestry.of(self.connection, self.pid)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AcceptedCaller]:
    """Its parent is another process than the one that asks for its origin, as for the daemon."""
    with calling(tmp_path) as accepted:
        monkeypatch.setattr("holdfast.daemon.listener.accepting.os.getpid", lambda: NO_PID - 1)
        yield accepted


@contextmanager
def calling(directory: Path) -> Iterator[AcceptedCaller]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / "socket"))
        listener.listen()
        argv = [sys.executable, "-c", CALLER, str(directory / "socket")]
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        connection, _ = listener.accept()
        accepted = AcceptedCaller(process, connection)
        with connection, process:
            try:
                yield accepted
            finally:
                accepted.end()


def is_untraced(origin: BoundOrigin | None) -> bool:
    return origin is not None and origin.session.startswith("untraced-") and origin.is_judged


def test_a_descendant_of_a_held_command_is_bound_to_its_session(caller: AcceptedCaller) -> None:
    this = os.getppid()
    parent = proc.look(caller.pid)
    assert parent is not None
    assert caller.origin(found(parent.ppid)) == caller.origin(found(caller.pid)) == caller.origin(found(this)) == BOUND
    assert caller.origin(found(parent.ppid, gated=False)) == BoundOrigin("bound", False)


def test_a_caller_from_elsewhere_is_free(caller: AcceptedCaller) -> None:
    assert caller.origin(found()) is None


def test_an_unknown_caller_is_not_free(caller: AcceptedCaller) -> None:
    assert is_untraced(found().of(caller.connection, 0))  # a process of another pid namespace
    assert is_untraced(caller.origin(found(marks=None)))  # its environment may not be read


def test_what_the_keeper_adopted_is_bound_to_the_session_of_its_cgroup(caller: AcceptedCaller) -> None:
    info = proc.look(caller.pid)
    assert info is not None
    keepers = frozenset({info.ppid})
    assert is_untraced(caller.origin(found(keepers=keepers)))
    assert is_untraced(caller.origin(found(keepers=keepers, marks=CallerMarks(None, made.process(1).id))))
    assert caller.origin(found(keepers=keepers, marks=CallerMarks("7-1-ab", None), group="/sys/x/7-1-ab")) == BOUND
    assert is_untraced(caller.origin(found(marks=CallerMarks("7-2-cd", None), group="/sys/x/7-1-ab")))


def test_a_command_that_calls_before_its_start_is_known_is_bound_to_its_session(caller: AcceptedCaller) -> None:
    info = proc.look(caller.pid)
    assert info is not None
    starting = made.process(2, Requested(), session="bound", gated=True)
    for marks in (CallerMarks(None, starting.id), CallerMarks("7-3-ef", starting.id)):
        known = found(keepers=frozenset({info.ppid}), marks=marks)
        known._registry.put(starting)
        assert caller.origin(known) == BOUND


def test_what_it_adopted_is_bound_to_the_process_whose_session_it_is_in(caller: AcceptedCaller) -> None:
    info = proc.look(caller.pid)
    assert info is not None and info.session == caller.pid
    with subprocess.Popen(["true"], start_new_session=True) as ended:
        ended.wait()
    known = found(keepers=frozenset({info.ppid}))
    process = next(iter(known._registry.all.values()))
    with known.helping(caller.pid, process):
        assert caller.origin(known) == BOUND
    assert is_untraced(caller.origin(known))  # another process has the pid of the helper that ended
    with known.helping(ended.pid, process):
        pass
    member = info._replace(session=ended.pid)
    assert known._leader_of(member) == process.id


def test_the_environment_binds(caller: AcceptedCaller) -> None:
    assert caller.origin(found(marks=CallerMarks(None, made.process(1).id))) == BOUND
    assert is_untraced(caller.origin(found(marks=CallerMarks(None, "proc_ffffffffffff"))))


def test_an_instance_inside_a_held_command_of_another_is_free_there(
    caller: AcceptedCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_OUTER_ID", "proc_ffffffffffff")
    assert caller.origin(found(marks=CallerMarks(None, "proc_ffffffffffff"))) is None
    monkeypatch.setenv("HOLDFAST_OUTER_ID", made.process(1).id)
    assert caller.origin(found(marks=CallerMarks(None, made.process(1).id))) == BOUND


def test_a_caller_that_died_is_not_free(caller: AcceptedCaller) -> None:
    caller.end()
    assert is_untraced(caller.origin(found()))
    assert is_untraced(caller.origin(found(caller.pid)))


def test_nor_is_one_whose_pid_another_process_has_now(caller: AcceptedCaller) -> None:
    other = os.getppid()
    caller.end()
    assert is_untraced(found().of(caller.connection, other))


def test_without_a_descriptor_of_the_peer_the_pid_is_used(
    caller: AcceptedCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wire.frames._SO_PEERPIDFD", 9999)  # as a kernel that does not know it
    assert caller.origin(found()) is None
    assert caller.origin(found(caller.pid)) == BOUND
    caller.end()
    assert is_untraced(caller.origin(found()))


def test_a_worker_of_the_daemon_is_free(tmp_path: Path) -> None:
    with calling(tmp_path) as caller:
        assert caller.origin(found(marks=CallerMarks("7-1-ab", None))) is None


def test_a_line_of_ancestors_that_is_broken_is_not_free(caller: AcceptedCaller) -> None:
    broken: Any = found()
    broken._place.ancestors = lambda pid: iter(list(proc.ancestors(pid))[:1])
    assert is_untraced(caller.origin(broken))
    info = proc.look(caller.pid)
    assert info is not None
    younger = info._replace(pid=info.ppid, start=info.start + 1)
    broken._place.ancestors = lambda pid: iter([info, younger, *list(proc.ancestors(info.ppid))[1:]])
    assert is_untraced(caller.origin(broken))


def test_a_daemon_without_descriptors_takes_no_one_for_untraced(caller: AcceptedCaller) -> None:
    """It cannot find out: the connection is refused, and the client tries again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ancestry = found()
    used = os.dup(0)
    os.close(used)
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            caller.origin(ancestry)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert caller.origin(ancestry) is None
