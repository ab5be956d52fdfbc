"""Who may use the dashboard in a browser: one-time keys, and the sessions that they begin.

A key is in the link that `holdfast dashboard` prints. The page exchanges it for a cookie and a secret, and needs both
from then on: browsers send a cookie to every port of this machine, so it proves nothing alone. Where the user has set a
password, it does the same as a key, as often as it is typed. All of them are kept as hashes in a file, so that they
outlive the daemon.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import secrets
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdfast import files, light_json
from holdfast.daemon.core.log import note
from holdfast.errors import BadValue, Denied, DiskFull
from holdfast.records import Struct, asdict

#: Seconds in which a link must be opened.
KEY_TIME = 600.0
#: Seconds after which a session ends by itself.
SESSION_TIME = 30 * 86400.0
_MOST_KEYS = 50
_MOST_SESSIONS = 200
_HEX = frozenset("0123456789abcdef")
#: Characters of a password.
SHORTEST_PASSWORD, LONGEST_PASSWORD = 8, 256
#: For scrypt: 32 MiB and about a tenth of a second for each attempt.
_COST, _BLOCK = 1 << 15, 8
#: Wrong passwords from one address, and from all of them, before an attempt has to wait.
_FREE_ATTEMPTS, _MOST_ATTEMPTS = 5, 60
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 900.0
_MOST_ADDRESSES = 1000


class PageKey(Struct, frozen=True):
    """The hash of a one-time key, and what it gives."""

    key: str
    read_only: bool
    until: float


class PageSession(Struct, frozen=True):
    """The hashes of a cookie and of a secret that belong together. Tabs of one browser may share the cookie."""

    cookie: str
    secret: str
    read_only: bool
    began: float
    until: float
    by_password: bool = False


class PagePassword(Struct, frozen=True):
    """The hash of a password, and what it was made with. Both are hexadecimal."""

    salt: str
    hash: str


class TooManyAttempts(Denied):
    """Wrong passwords were tried; the next attempt can be made in `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__("too many wrong passwords", next=f"try again in {seconds:.0f} s, or: holdfast dashboard")
        self.seconds = seconds


class PasswordAttempts:
    """How many wrong passwords came from which address, and from all of them. It is in memory only."""

    def __init__(self) -> None:
        #: The count, and when the next attempt may be made.
        self._failed: dict[str, tuple[int, float]] = {}
        self._recent: list[float] = []

    def check(self, address: str, now: float) -> None:
        """Raises TooManyAttempts."""
        pause = self._failed.get(address, (0, 0.0))[1] - now
        self._recent = [at for at in self._recent if at > now - 60.0]
        if len(self._recent) >= _MOST_ATTEMPTS:
            pause = max(pause, self._recent[0] + 60.0 - now)
        if pause > 0:
            raise TooManyAttempts(max(1.0, pause))

    def begin(self, address: str, now: float) -> None:
        """Counted as wrong until it is known to be right: attempts at the same time cannot get around the limit."""
        count = self._failed.pop(address, (0, 0.0))[0] + 1
        pause = min(_FIRST_PAUSE * 2.0 ** min(count - _FREE_ATTEMPTS, 20), _LONGEST_PAUSE)
        self._failed[address] = count, now + pause if count >= _FREE_ATTEMPTS else 0.0
        while len(self._failed) > _MOST_ADDRESSES:
            del self._failed[next(iter(self._failed))]
        self._recent.append(now)

    def succeed(self, address: str) -> None:
        self._failed.pop(address, None)
        if self._recent:
            self._recent.pop()


class LoggedIn(Struct, frozen=True):
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
        self._password: PagePassword | None = None
        self._attempts = PasswordAttempts()
        #: One attempt at a time: each takes memory and a core.
        self._hashing = asyncio.Lock()
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
            return await self._begin(cookies, found.read_only, by_password=False)

    @property
    def has_password(self) -> bool:
        self._read()
        return self._password is not None

    async def set_password(self, password: str) -> None:
        """Set it, or remove it where it is empty. Pages that were opened with another one end. On disk when it returns.

        Raises BadValue, DiskFull.
        """
        if password and len(password) < SHORTEST_PASSWORD:
            raise BadValue(f"the password needs {SHORTEST_PASSWORD} characters or more", next="choose a longer one")
        salt = os.urandom(16)
        made = PagePassword(salt.hex(), await asyncio.to_thread(_slow_hash, password, salt)) if password else None
        async with self._lock:
            self._read()
            self._password = made
            ended = [one for one in self._sessions.values() if one.by_password]
            self._sessions = {name: one for name, one in self._sessions.items() if not one.by_password}
            await self._write()
            for session in ended:
                self._cut(session)

    async def log_in_with_password(self, password: str, address: str, cookies: list[str]) -> LoggedIn:
        """Raises Denied for a wrong password, and TooManyAttempts."""
        async with self._hashing:
            self._read()
            kept, now = self._password, time.monotonic()
            if kept is None:
                raise Denied("no password is set", next="holdfast dashboard --set-password")
            self._attempts.check(address, now)
            self._attempts.begin(address, now)
            found = await asyncio.shield(asyncio.to_thread(_slow_hash, password, bytes.fromhex(kept.salt)))
            if not hmac.compare_digest(found, kept.hash):
                note("dashboard-wrong-password", address=address)
                raise Denied("the password is wrong", next="type it again, or open a link: holdfast dashboard")
            self._attempts.succeed(address)
        async with self._lock:
            self._read()
            if self._password != kept:  # it was changed meanwhile
                raise Denied("the password is wrong", next="type it again, or open a link: holdfast dashboard")
            return await self._begin(cookies, read_only=False, by_password=True)

    async def _begin(self, cookies: list[str], read_only: bool, by_password: bool) -> LoggedIn:
        """A new session, on disk. To be called with the lock."""
        now = time.time()
        self._sessions = {name: one for name, one in self._sessions.items() if one.until > now}
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        known = {one.cookie for one in self._sessions.values()}
        cookie = next((one for one in cookies if _hash(one) in known), None) or secrets.token_urlsafe(32)
        secret = secrets.token_urlsafe(32)
        session = PageSession(_hash(cookie), _hash(secret), read_only, now, now + SESSION_TIME, by_password)
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
        self._password = kept.get("password")
        self._keys = {one.key: one for one in kept.get("keys", ())}
        self._sessions = {(one.cookie, one.secret): one for one in kept.get("sessions", ())}

    async def _write(self) -> None:
        kept = {
            "instance": self._instance,
            "password": asdict(self._password) if self._password is not None else None,
            "keys": [asdict(one) for one in self._keys.values()],
            "sessions": [asdict(one) for one in self._sessions.values()],
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
    password = kept.get("password")
    return {
        "instance": instance,
        "password": PagePassword(_hex(password["salt"]), _hex(password["hash"])) if password is not None else None,
        "keys": [PageKey(str(one["key"]), bool(one["read_only"]), float(one["until"])) for one in kept["keys"]],
        "sessions": [
            PageSession(
                str(one["cookie"]),
                str(one["secret"]),
                bool(one["read_only"]),
                float(one["began"]),
                float(one["until"]),
                bool(one.get("by_password")),
            )
            for one in kept["sessions"]
        ],
    }


def _hex(text: Any) -> str:
    """Raises ValueError, TypeError."""
    return bytes.fromhex(text).hex()


def _slow_hash(password: str, salt: bytes) -> str:
    """The same for a password that another keyboard composes in another way."""
    data = unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")
    return hashlib.scrypt(data, salt=salt, n=_COST, r=_BLOCK, p=1, maxmem=2 * 128 * _COST * _BLOCK).hex()


def _hash(text: str) -> str:
    """They are random and long: nothing slower is needed."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
