"""The user's login environment: what the profile files export, read once from a login shell and cached.

No start pays for a login shell: the last result is on disk and served at once, a new one is read when the daemon
starts. Secrets that a profile exports are not on disk: after a restart of the daemon, a start that is to have them
waits for the shell.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping

from holdfast import files
from holdfast.places.keeper_link import Note
from holdfast.secrets.environment import secret_names

#: A profile that takes longer is ignored.
_BUDGET = 10.0
_MARK = b"\0holdfast-environment\0"
_SCRIPT = r"printf '\0holdfast-environment\0'; exec env -0"

#: Not the PATH of the caller that happened to start the daemon.
_PATH_AT_LOGIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: Variables that a shell sets for itself.
_SHELL_OWN = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "PS1", "BASH_ENV"})

Environment = dict[str, str]


class LoginEnvironment:
    """Cached in the file `path`. `environ` is what the login shell starts from, in `directory`."""

    def __init__(self, path: str, environ: Mapping[str, str], directory: str, note: Note) -> None:
        self._path = path
        self._environ = dict(environ)
        self._directory = directory
        self._note = note
        self._known, self._lacks_secrets = self._load()
        self._fetched: asyncio.Future[Environment] = asyncio.get_running_loop().create_future()
        self.is_fresh = False

    async def get(self, with_secrets: bool = True) -> Environment:
        """The environment: at once where it is cached, else when the shell has answered."""
        if self._known is not None and not (with_secrets and self._lacks_secrets):
            return self._known
        return await asyncio.shield(self._fetched)

    async def refresh(self) -> None:
        """Run the login shell. Without an answer in time, the cached environment stays."""
        found = await self._read_shell()
        if found:
            self._known, self._lacks_secrets = found, False
            self.is_fresh = True
            await asyncio.to_thread(self._save, found)
        else:
            self._note("login-environment-unknown", shell=_shell(self._environ))
        if not self._fetched.done():
            self._fetched.set_result(found or self._known or self._environ)

    async def _read_shell(self) -> Environment | None:
        """What a login shell exports; None without an answer.

        In a daemon thread: a daemon that stops meanwhile does not wait for a profile, nor end it half way.
        """
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Environment | None] = loop.create_future()

        def settle(answer: Environment | None) -> None:
            if not answered.done():
                answered.set_result(answer)

        def run() -> None:
            answer = parse(_run_shell(self._environ, self._directory))
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, answer)

        threading.Thread(target=run, name="login", daemon=True).start()
        return await answered

    def _load(self) -> tuple[Environment | None, bool]:
        """What is cached, and whether secrets are missing in it. Secrets that an older release cached are removed."""
        try:
            with open(self._path, "rb") as file:
                value = json.load(file)
        except (OSError, ValueError):
            return None, False
        if not isinstance(value, dict) or not all(one is None or isinstance(one, str) for one in value.values()):
            return None, False
        known = {name: content for name, content in value.items() if content is not None}
        if secret_names(known):
            self._save(value)
            return known, False
        return known, len(known) < len(value)

    def _save(self, environment: Mapping[str, str | None]) -> None:
        """Of secrets, only the names are cached."""
        secrets = secret_names({name: content for name, content in environment.items() if content is not None})
        kept = {name: None if name in secrets else content for name, content in environment.items()}
        try:
            files.replace(self._path, json.dumps(kept).encode())
        except OSError as failed:
            self._note("login-environment-not-kept", why=failed)


def _shell(environ: Mapping[str, str]) -> str:
    return environ.get("SHELL") or "/bin/sh"


def _run_shell(environ: Mapping[str, str], directory: str) -> bytes:
    try:
        shell = subprocess.Popen(
            [_shell(environ), "-l", "-c", _SCRIPT],
            env={name: value for name, value in environ.items() if not _is_ours(name)} | {"PATH": _PATH_AT_LOGIN},
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return b""
    with shell:
        try:
            return shell.communicate(timeout=_BUDGET)[0]
        except subprocess.TimeoutExpired as late:
            # SIGTERM and not SIGKILL: a profile that is cut short may leave locks of other programs behind.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)
            # Something that the profile started may keep the pipe open: then the answer is complete.
            return late.output or b""


def parse(answer: bytes) -> Environment | None:
    """The variables behind the mark, without what the profile printed before it; None without a mark."""
    _, mark, listing = answer.rpartition(_MARK)
    if not mark:
        return None
    pairs = (entry.partition("=") for entry in listing.decode(errors="surrogateescape").split("\0"))
    return {
        name: value
        for name, equals, value in pairs
        if name and equals and name not in _SHELL_OWN and not _is_ours(name)
    }


def _is_ours(name: str) -> bool:
    return name.startswith("HOLDFAST_")
