"""The benchmarks run from end to end and leave nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import eventually, processes_of

ROOT = Path(__file__).parents[2]


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_quick_run_fills_every_line_of_the_table(tmp_path: Path) -> None:
    place, out = tmp_path / "place", tmp_path / "out"
    place.mkdir()
    command = [sys.executable, "-m", "bench", "--quick", "--no-peers", "--dir", str(place), "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads((out / "latest.json").read_text(encoding="utf-8"))["figures"]
    assert len(figures) >= 16
    assert os.listdir(place) == []
    eventually(lambda: not processes_of(str(place)))
