"""The command that is held while we measure."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.cache import cached

HERE = Path(__file__).parent


def child_command() -> list[str]:
    """How to call it: the compiled one, or the same in Python where nothing compiles."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return [sys.executable, "-S", str(HERE / "child.py")]
    source = HERE / "child.c"
    program = cached("child")
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        subprocess.run([compiler, "-O2", "-o", str(program), str(source)], check=True)
    return [str(program)]
