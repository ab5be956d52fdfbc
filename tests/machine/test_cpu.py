"""Processor time, of this process and of nobody."""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast.machine.cpu import cpu_seconds


def test_what_a_process_used() -> None:
    before = cpu_seconds([os.getpid()], None)
    assert before is not None
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    after = cpu_seconds([os.getpid()], None)
    assert after is not None
    assert 0.08 <= after - before < 1.0


def test_what_a_group_used_is_told_by_the_group(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n")
    assert cpu_seconds([], str(tmp_path)) == 1.5


def test_a_group_that_does_not_tell_is_asked_by_its_members(tmp_path: Path) -> None:
    assert cpu_seconds([os.getpid()], str(tmp_path)) is not None
    assert cpu_seconds([], str(tmp_path)) is None
    assert cpu_seconds([2**31 - 1], None) is None
