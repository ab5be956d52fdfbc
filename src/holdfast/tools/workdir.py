"""The working directory of a session, in which its next command runs. On disk, so that it outlives the program.

A foreground command writes where it went with cd to a small file of its own (see cwd.bash).
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from importlib import resources

from holdfast import files
from holdfast.tools.answers import ToolRefusal

#: Files of commands whose end was not seen are removed after this time.
_STALE_TRAIL = 2 * 86400.0
_STALE_SESSION = 90 * 86400.0
_LONGEST = 1 << 16


class WorkingDirectory:
    """The directory of one session, kept in the instance's home. Where it cannot be written, it is forgotten."""

    def __init__(self, home: str, session: str, begin: str | None = None) -> None:
        self._directory = os.path.join(home, "sessions")
        name = hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()[:32]
        self._path = os.path.join(self._directory, f"{name}.json")
        self._script = os.path.join(self._directory, "cwd.bash")
        self._known: str | None = begin
        self._before: str | None = None
        self._session = session
        self._is_made = False

    def enter(self, workdir: str | None) -> tuple[str, str | None]:
        """Where a command runs, and a note if it has changed. Raises ToolRefusal if there is no `workdir`."""
        directory, notice = self._now()
        if workdir is None:
            return directory, notice
        target = os.path.normpath(os.path.join(directory, os.path.expanduser(workdir)))
        if not os.path.isdir(target):
            what = f"no directory {target[:300]}" if not os.path.exists(target) else f"{target[:300]} is no directory"
            raise ToolRefusal("no_such_directory", what, f"the nearest that exists is {_nearest(target)}")
        return target, None

    def _now(self) -> tuple[str, str | None]:
        kept = self._read()
        if kept is None:
            return _own_directory(), None
        if os.path.isdir(kept):
            return kept, None
        near = _nearest(kept)
        self.keep(near)
        return near, (f"the directory {kept[:300]} is gone; now in {near}")

    def keep(self, directory: str, before: str | None = None) -> None:
        """Set the directory. `before` is where `cd -` leads."""
        self._known, self._before = directory, before
        kept = {"session": self._session, "cwd": directory, "before": before}
        try:
            self._make_directory()
            files.replace(self._path, json.dumps(kept).encode())
        except OSError:
            return

    def _read(self) -> str | None:
        try:
            with open(self._path, "rb") as file:
                found = json.loads(file.read(_LONGEST))
        except (OSError, ValueError):
            return self._known
        if not isinstance(found, dict):
            return self._known
        self._before = _directory(found.get("before"))
        return _directory(found.get("cwd")) or self._known

    def trail(self, directory: str | None) -> Trail | None:
        """For one command that begins in that directory; None where nothing can be written."""
        try:
            self._make_directory()
            path = os.path.join(self._directory, f"{secrets.token_hex(8)}.trail")
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except OSError:
            return None
        return Trail(path, self._script, directory, self._before)

    def _make_directory(self) -> None:
        if self._is_made and os.path.exists(self._script):
            return
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        script = resources.files("holdfast.tools").joinpath("cwd.bash").read_bytes()
        if _content(self._script) != script:
            files.replace(self._script, script)
        if not self._is_made:
            _sweep(self._directory)
        self._is_made = True


class Trail:
    """Where one command goes, as its shell writes it down."""

    def __init__(self, path: str, script: str, directory: str | None, before: str | None) -> None:
        self._path = path
        self._script = script
        #: With symbolic links as they were followed, so that `cd ..` and `cd -` work as in one shell.
        self._variables = {"PWD": directory, "OLDPWD": before}

    def environ(self) -> dict[str, str]:
        """The caller's environment, with what makes bash report its directory."""
        env = {**os.environ, "BASH_ENV": self._script, "HOLDFAST_CWD_FILE": self._path}
        for name, value in self._variables.items():
            env.pop(name, None)
            env |= {name: value} if value is not None else {}
        if own := os.environ.get("BASH_ENV"):
            env["HOLDFAST_BASH_ENV"] = own
        return env

    def end(self) -> str | None:
        """Where it went last, None if nowhere. Later moves are not followed."""
        found = _content(self._path)[:_LONGEST]
        try:
            os.unlink(self._path)
        except OSError:
            pass
        return _directory(os.fsdecode(found))


def _directory(found: object) -> str | None:
    """A path that can be a directory; it need not exist."""
    return found if isinstance(found, str) and found.startswith("/") and "\0" not in found else None


def _own_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return _nearest(os.path.expanduser("~"))


def _nearest(path: str) -> str:
    """The nearest directory above that exists."""
    while not os.path.isdir(path) and path != "/":
        path = os.path.dirname(path) or "/"
    return path


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _sweep(directory: str) -> None:
    now = time.time()
    for entry in os.scandir(directory):
        limit = _STALE_SESSION if entry.name.endswith((".json", ".bash")) else _STALE_TRAIL
        try:
            if not entry.name.endswith(".bash") and now - entry.stat().st_mtime > limit:
                os.unlink(entry.path)
        except OSError:
            continue
