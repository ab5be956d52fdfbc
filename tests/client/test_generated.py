"""What is derived from the declared operations is up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_scripts_generate_would_change_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), "run scripts/generate"
