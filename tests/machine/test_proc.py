"""What /proc and the cgroup tree show of this process, of one that it starts, and of none."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.machine import cgroups, proc
from tests.support import eventually

NO_PID = 2**31 - 1


def test_the_processor_time_of_a_process() -> None:
    before = proc.cpu_seconds([os.getpid()])
    assert before is not None
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    after = proc.cpu_seconds([os.getpid(), NO_PID])
    assert after is not None
    assert 0.08 <= after - before < 1.0
    assert proc.cpu_seconds([NO_PID]) is None


def test_the_processor_time_of_a_group(tmp_path: Path) -> None:
    assert cgroups.cpu_seconds(str(tmp_path)) is None
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n")
    assert cgroups.cpu_seconds(str(tmp_path)) == 1.5


def test_gauges_keep_files_open_until_they_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 1\n")
    gauges = cgroups.CpuGauges()
    assert gauges.cpu_seconds(str(tmp_path)) == 1e-6
    assert gauges.are_open
    gauges.keep([])
    assert not gauges.are_open


def test_memory_counts_resident_pages_only() -> None:
    memory = proc.memory_of([os.getpid(), NO_PID])
    assert memory is not None
    assert 1 << 20 < memory.now <= memory.peak
    assert proc.memory_of([NO_PID]) is None


def test_a_name_with_spaces_and_parentheses_is_read_whole(tmp_path: Path) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "1000"]) as process:
        try:
            eventually(lambda: proc.arguments(process.pid) == [str(program), "1000"])
            info = proc.look(process.pid)
            assert info is not None
            assert info.name == program.name
            assert (info.ppid, info.session) == (os.getpid(), os.getsid(0))
        finally:
            process.kill()


def test_a_zombie_is_dead() -> None:
    process = subprocess.Popen(["true"])
    start = eventually(lambda: Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2].split())[19]
    eventually(lambda: not proc.is_alive(process.pid))
    assert Path(f"/proc/{process.pid}").exists()
    assert not proc.is_alive(process.pid, int(start))
    process.wait()


def test_another_start_time_is_another_process() -> None:
    info = proc.look(os.getpid())
    assert info is not None
    assert proc.is_alive(info.pid, info.start)
    assert not proc.is_alive(info.pid, info.start + 1)


def test_ancestors_end_below_init() -> None:
    line = [info.pid for info in proc.ancestors(os.getpid())]
    assert line[:2] == [os.getpid(), os.getppid()][: len(line)]
    assert 1 not in line
    assert list(proc.ancestors(NO_PID)) == list(proc.ancestors(0)) == list(proc.ancestors(1)) == []


def test_a_line_of_ancestors_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    info = proc.look(os.getpid())
    assert info is not None
    monkeypatch.setattr(proc, "look", lambda pid: info._replace(pid=pid, ppid=5 - pid))
    assert len(list(proc.ancestors(2))) == proc.MOST_GENERATIONS


def test_a_tree_has_descendants_and_the_members_of_the_session() -> None:
    call = [sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '1000'], start_new_session=True)"]
    with subprocess.Popen(call, start_new_session=True) as process:
        try:
            eventually(lambda: len(proc.trees([process.pid])[process.pid]) > 1)
            assert process.pid in proc.trees([process.pid])[process.pid]
        finally:
            for pid in reversed(proc.trees([process.pid])[process.pid]):
                os.kill(pid, 9)


def test_a_process_that_sudo_did_not_start_has_no_sudo_above() -> None:
    assert proc.sudo_above(os.getpid()) is None
    assert proc.sudo_above(NO_PID) is None


def test_a_waiting_process_has_a_state() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            assert eventually(lambda: (state := proc.wait_state(process.pid)) and state.startswith("S (sleeping)"))
        finally:
            process.kill()
    assert proc.wait_state(NO_PID) is None
