"""Who may use the dashboard in a browser: one-time keys, and the sessions that they begin.

A key is in the link that `holdfast dashboard` prints. The page exchanges it for a cookie and a secret, and needs both
from then on: browsers send a cookie to every port of this machine, so it proves nothing alone. All of them are kept as
hashes in a file, so that they outlive the daemon.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from holdfast import files, light_json
from holdfast.daemon.core.log import note
from holdfast.errors import Denied, DiskFull

#: Seconds in which a link must be opened.
KEY_TIME = 600.0
#: Seconds after which a session ends by itself.
SESSION_TIME = 30 * 86400.0
_MOST_KEYS = 50
_MOST_SESSIONS = 200
_HEX = frozenset("0123456789abcdef")


class PageKey(NamedTuple):
    """The hash of a one-time key, and what it gives."""

    key: str
    read_only: bool
    until: float


class PageSession(NamedTuple):
    """The hashes of a cookie and of a secret that belong together. Tabs of one browser may share the cookie."""

    cookie: str
    secret: str
    read_only: bool
    began: float
    until: float


class LoggedIn(NamedTuple):
    cookie: str
    secret: str
    session: PageSession


class PageAccess:
    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = asyncio.Lock()
        self._is_read = False
        self._instance = ""
        self._keys: dict[str, PageKey] = {}
        self._sessions: dict[tuple[str, str], PageSession] = {}
        #: How to cut the open WebSockets of each page.
        self._connections: dict[PageSession, set[Callable[[], object]]] = {}

    @property
    def instance(self) -> str:
        """The id of this instance: the same for as long as its file is there."""
        self._read()
        return self._instance

    @property
    def cookie_name(self) -> str:
        """Instances on one machine share the cookies of its name, so each has its own."""
        return f"holdfast-{self.instance}"

    async def make_key(self, read_only: bool) -> tuple[str, float]:
        """A new key, and until when it can be used. It is on disk when this returns."""
        async with self._lock:
            self._read()
            key, now = secrets.token_urlsafe(32), time.time()
            self._keys = {name: one for name, one in self._keys.items() if one.until > now}
            while len(self._keys) >= _MOST_KEYS:
                del self._keys[next(iter(self._keys))]
            made = PageKey(_hash(key), read_only, now + KEY_TIME)
            self._keys[made.key] = made
            await self._write()
            return key, made.until

    async def log_in(self, key: str, cookies: list[str]) -> LoggedIn:
        """Use a key up. A browser that has a valid cookie keeps it, so that its other tabs go on.

        Raises Denied for a key that is unknown, used or too old.
        """
        async with self._lock:
            self._read()
            found, now = self._keys.pop(_hash(key), None), time.time()
            if found is None or found.until <= now:
                raise Denied("this link was used before, or is too old", next="holdfast dashboard")
            self._sessions = {name: one for name, one in self._sessions.items() if one.until > now}
            while len(self._sessions) >= _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            known = {one.cookie for one in self._sessions.values()}
            cookie = next((one for one in cookies if _hash(one) in known), None) or secrets.token_urlsafe(32)
            secret = secrets.token_urlsafe(32)
            session = PageSession(_hash(cookie), _hash(secret), found.read_only, now, now + SESSION_TIME)
            self._sessions[session.cookie, session.secret] = session
            await self._write()
            return LoggedIn(cookie, secret, session)

    def find(self, cookies: list[str], offered: list[str]) -> PageSession | None:
        """The session of one of these cookies and one of these secrets."""
        if not cookies or not offered:
            return None
        self._read()
        for cookie in cookies:
            for secret in offered:
                found = self._sessions.get((_hash(cookie), _hash(secret)))
                if found is not None and found.until > time.time():
                    return found
        return None

    @contextmanager
    def connection(self, session: PageSession | None, abort: Callable[[], object]) -> Iterator[None]:
        """While a WebSocket of a page is open: it is cut when its page ends."""
        if session is None:
            yield
            return
        opened = self._connections.setdefault(session, set())
        opened.add(abort)
        try:
            yield
        finally:
            opened.discard(abort)
            if not opened:
                self._connections.pop(session, None)

    def _cut(self, session: PageSession) -> None:
        for abort in self._connections.pop(session, ()):
            abort()

    async def log_out(self, session: PageSession) -> bool:
        """End a session. Whether its cookie is of no more use."""
        async with self._lock:
            self._read()
            self._sessions.pop((session.cookie, session.secret), None)
            await self._write()
            self._cut(session)
            return all(one.cookie != session.cookie for one in self._sessions.values())

    async def close(self) -> None:
        """End all sessions and keys."""
        async with self._lock:
            self._read()
            self._keys, self._sessions = {}, {}
            await self._write()
            for session in list(self._connections):
                self._cut(session)

    def _read(self) -> None:
        if self._is_read:
            return
        self._is_read = True
        kept: dict[str, Any] = {}
        try:
            with open(self._path, "rb") as file:
                kept = _checked(light_json.load_bytes(file.read()))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as broken:
            note("dashboard-file-unreadable", why=broken)  # links and sessions in it are lost: new ones can be made
        self._instance = kept.get("instance") or os.urandom(6).hex()
        self._keys = {one.key: one for one in kept.get("keys", ())}
        self._sessions = {(one.cookie, one.secret): one for one in kept.get("sessions", ())}

    async def _write(self) -> None:
        kept = {
            "instance": self._instance,
            "keys": [one._asdict() for one in self._keys.values()],
            "sessions": [one._asdict() for one in self._sessions.values()],
        }
        data = light_json.dumps(kept).encode()
        # It waits for the disk. Shielded: a client that disconnects leaves the file as the memory says.
        try:
            await asyncio.shield(asyncio.to_thread(files.replace, self._path, data, finish=os.fsync))
        except OSError as failed:
            self._is_read = False  # what the file says holds
            raise DiskFull(f"cannot write {self._path}: {failed.strerror}", next="free some space") from failed


def _checked(kept: Any) -> dict[str, Any]:
    """Raises ValueError, TypeError or KeyError for what was not written here."""
    instance = kept["instance"]
    if not (isinstance(instance, str) and len(instance) == 12 and set(instance) <= _HEX):
        raise ValueError("no instance")
    return {
        "instance": instance,
        "keys": [PageKey(str(one["key"]), bool(one["read_only"]), float(one["until"])) for one in kept["keys"]],
        "sessions": [
            PageSession(
                str(one["cookie"]), str(one["secret"]), bool(one["read_only"]), float(one["began"]), float(one["until"])
            )
            for one in kept["sessions"]
        ],
    }


def _hash(text: str) -> str:
    """They are random and long: nothing slower is needed."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
