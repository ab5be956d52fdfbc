"""The user's login environment: what the profile files export, asked for once and kept.

No start pays for a login shell: the last answer is on disk and served at once, a new one is fetched when the daemon
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

from holdfast.daemon.logbook import note
from holdfast.secrets.environment import secret_names

#: A profile that takes longer is done without.
_BUDGET = 10.0
_MARK = b"\0holdfast-environment\0"
_SCRIPT = r"printf '\0holdfast-environment\0'; exec env -0"

#: Not that of whoever happened to start the daemon: their additions are theirs.
_PATH_AT_LOGIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: What a shell sets for itself.
_OF_THE_SHELL = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "PS1", "BASH_ENV"})

Environment = dict[str, str]


class LoginEnvironment:
    def __init__(self, path: str, environ: Mapping[str, str]) -> None:
        self._path = path
        self._environ = dict(environ)
        self._known, self._lacks_secrets = _read(path)
        self._fetched: asyncio.Future[Environment] = asyncio.get_running_loop().create_future()
        self.is_fresh = False

    async def get(self, with_secrets: bool = True) -> Environment:
        """The environment, at once where it was ever known, else when the shell has told it."""
        if self._known is not None and not (with_secrets and self._lacks_secrets):
            return self._known
        return await asyncio.shield(self._fetched)

    async def refresh(self) -> None:
        """Ask the login shell; what it does not tell in time stays as it was."""
        found = await _told(self._environ)
        if found:
            self._known, self._lacks_secrets = found, False
            self.is_fresh = True
            await asyncio.to_thread(_write, self._path, found)
        else:
            note("login-environment-unknown", shell=_shell(self._environ))
        if not self._fetched.done():
            self._fetched.set_result(found or self._known or self._environ)


def _shell(environ: Mapping[str, str]) -> str:
    return environ.get("SHELL") or "/bin/sh"


async def _told(environ: Mapping[str, str]) -> Environment | None:
    """What a login shell exports; None when it does not say.

    The thread is nobody's: a daemon that stops meanwhile does not wait for a profile, nor end it half way.
    """
    loop = asyncio.get_running_loop()
    told: asyncio.Future[Environment | None] = loop.create_future()

    def tell(answer: Environment | None) -> None:
        if not told.done():
            told.set_result(answer)

    def ask() -> None:
        answer = parse(_ask_shell(environ))
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            loop.call_soon_threadsafe(tell, answer)

    threading.Thread(target=ask, name="login", daemon=True).start()
    return await told


def _ask_shell(environ: Mapping[str, str]) -> bytes:
    home = environ.get("HOME", "")
    try:
        shell = subprocess.Popen(
            [_shell(environ), "-l", "-c", _SCRIPT],
            env={name: value for name, value in environ.items() if not _is_ours(name)} | {"PATH": _PATH_AT_LOGIN},
            cwd=home if os.path.isdir(home) else "/",
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
            # Asked and not forced: a profile that is cut short may leave locks of other programs behind.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)
            # Something that the profile left behind may just keep the pipe open: then the answer is there.
            return late.output or b""


def parse(answer: bytes) -> Environment | None:
    """The variables behind the mark, whatever the profile printed before it; None when there is no mark."""
    _, mark, listing = answer.rpartition(_MARK)
    if not mark:
        return None
    pairs = (entry.partition("=") for entry in listing.decode(errors="surrogateescape").split("\0"))
    return {
        name: value
        for name, equals, value in pairs
        if name and equals and name not in _OF_THE_SHELL and not _is_ours(name)
    }


def _is_ours(name: str) -> bool:
    return name.startswith("HOLDFAST_")


def _read(path: str) -> tuple[Environment | None, bool]:
    """What is kept, and whether secrets are missing in it. What an older release kept of them is removed."""
    try:
        with open(path, "rb") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return None, False
    if not isinstance(value, dict) or not all(
        content is None or isinstance(content, str) for content in value.values()
    ):
        return None, False
    known = {name: content for name, content in value.items() if content is not None}
    if secret_names(known):
        _write(path, value)
        return known, False
    return known, len(known) < len(value)


def _write(path: str, environment: Mapping[str, str | None]) -> None:
    """Of secrets, only the names are kept."""
    secrets = secret_names({name: content for name, content in environment.items() if content is not None})
    kept = {name: None if name in secrets else content for name, content in environment.items()}
    try:
        fd = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "w") as file:
            json.dump(kept, file)
        os.replace(f"{path}.new", path)
    except OSError as failed:
        note("login-environment-not-kept", why=failed)
