"""A short storm in every run of the tests; `python -m tests.chaos` is the long one."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import commands
from tests.chaos.ledger import NoticeLedger
from tests.support import kill_instance

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(300)
def test_nothing_is_lost_in_a_storm(tmp_path: Path) -> None:
    options = ["--kills", "1", "--seed", "3", "--rounds", "14", "--commands", "7", "--directory", str(tmp_path)]
    storm = [sys.executable, "-m", "tests.chaos", *options, "--without", "long stop"]
    try:
        done = subprocess.run(storm, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    finally:
        kill_instance(str(tmp_path))
    assert (done.returncode, done.stdout.splitlines()[-1].endswith(": 0 faults")) == (0, True), (
        done.stdout + done.stderr
    )


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend", ["podman", "ssh"])
def test_nothing_is_lost_in_a_storm_over_a_place(backend: str, tmp_path: Path) -> None:
    programs = {"podman": ("podman", "runc", "busybox"), "ssh": ("sshd",)}[backend]
    if os.geteuid() != 0 or not all(shutil.which(one, path=f"{os.environ['PATH']}:/usr/sbin") for one in programs):
        pytest.skip(f"the {backend} of the tests needs root and {', '.join(programs)}; scripts/test installs them")
    options = ["--kills", "1", "--seed", "5", "--rounds", "5", "--commands", "7", "--directory", str(tmp_path)]
    storm = [sys.executable, "-m", "tests.chaos", "--backend", backend, *options]
    try:
        done = subprocess.run(storm, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    finally:
        kill_instance(str(tmp_path))
    assert (done.returncode, done.stdout.splitlines()[-1].endswith(": 0 faults")) == (0, True), (
        done.stdout + done.stderr
    )


def test_a_byte_that_is_wrong_is_a_fault_and_so_is_a_missing_notification() -> None:
    child = commands.make(1, "writer", "ada", 0.0, 10, random.Random(1))
    whole = child.expected["out"]
    assert child.fault_in("out", whole) is None
    assert "the same up to 20" in str(child.fault_in("out", whole[:20] + b"x" + whole[21:]))
    assert NoticeLedger().missing([child]) == [f"{child}: no notification of its end"]
