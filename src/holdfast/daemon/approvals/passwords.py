"""Passwords for sudo: from the configuration, remembered for a short time, or typed by the user. Never on disk."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import time
from collections.abc import Mapping

from holdfast.errors import NoPassword
from holdfast.model.password_cache import PasswordCache, overwrite

_COMMAND_TIMEOUT = 30.0
_LONGEST = 4096
_MOST_ANSWERED = 256


class Passwords:
    """`command` prints the password, if it is configured; `keep`: how long a typed one is used again."""

    def __init__(self, command: str, keep: float) -> None:
        self.command = command
        self._cache = PasswordCache(keep)
        #: Typed passwords that the waiting sudo has not got yet, by the fingerprint of its request.
        self._typed: dict[str, bytearray] = {}
        #: Each sudo that got a password: if it asks again, that one was wrong.
        self._answered: dict[tuple[int, int], None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def was_wrong(self, sudo: tuple[int, int], session: str) -> bool:
        """Whether this sudo got a password before. The remembered one is deleted then."""
        if sudo in self._answered:
            self._cache.wipe(session)
            return True
        return False

    def answered(self, sudo: tuple[int, int]) -> None:
        self._answered[sudo] = None
        while len(self._answered) > _MOST_ANSWERED:
            del self._answered[next(iter(self._answered))]

    def remembered(self, session: str) -> bytearray | None:
        return self._cache.get(session, time.monotonic())

    def remember(self, session: str, password: bytearray) -> None:
        self._cache.put(session, password, time.monotonic())
        self._expire()

    def forget(self, session: str) -> None:
        self._cache.wipe(session)

    def type(self, fingerprint: str, password: bytearray) -> None:
        """The user typed it for a sudo that waits, which takes it or drops it."""
        _write_no_core()
        self._typed[fingerprint] = password

    def take(self, fingerprint: str) -> bytearray | None:
        return self._typed.pop(fingerprint, None)

    def drop(self, fingerprint: str) -> None:
        if (password := self.take(fingerprint)) is not None:
            overwrite(password)

    async def configured(self, env: Mapping[str, str]) -> bytearray:
        """The first line that the configured command prints. Raises NoPassword."""
        _write_no_core()
        command = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", self.command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(env),
            limit=_LONGEST,
            start_new_session=True,
        )
        assert command.stdout is not None
        try:
            async with asyncio.timeout(_COMMAND_TIMEOUT):
                printed = await command.stdout.readline()
                code = await command.wait()
        except ValueError:
            raise _failed(f"prints more than a password: a line beyond {_LONGEST} bytes") from None
        except TimeoutError:
            raise _failed(f"takes longer than {_COMMAND_TIMEOUT:g} s") from None
        finally:
            if command.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(command.pid, signal.SIGKILL)
        line = bytearray(printed).partition(b"\n")[0]
        if code != 0 or not line:
            raise _failed(f"ended with exit code {code}" if code else "printed nothing")
        return line

    def _expire(self) -> None:
        """Wipe remembered passwords when their time is over."""
        if self._timer is not None:
            self._timer.cancel()
        due, self._timer = self._cache.expire(time.monotonic()), None
        if due is not None:
            pause = max(0.0, due - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(pause, self._expire)


def _write_no_core() -> None:
    """From the first password on, a crash of the daemon writes no core dump."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _failed(why: str) -> NoPassword:
    what = f"sudo_password_command {why}"
    return NoPassword(what, next="correct it in config.toml", data={"reason": "command_failed"})
