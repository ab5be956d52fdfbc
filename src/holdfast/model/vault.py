"""Passwords that may be used again for a short while: in memory alone, wiped when their time is over. No I/O."""

from __future__ import annotations

from typing import NamedTuple


class _Kept(NamedTuple):
    password: bytearray
    until: float


class Vault:
    """By session. Time is given, and never the wall clock's."""

    def __init__(self, keep: float) -> None:
        """`keep`: for so many seconds; 0 for not at all."""
        self._keep = keep
        self._kept: dict[str, _Kept] = {}

    def __repr__(self) -> str:
        return f"<Vault with {len(self._kept)}>"

    def put(self, session: str, password: bytearray, now: float) -> None:
        """A copy of it, in place of what was kept before."""
        self.wipe(session)
        if self._keep > 0:
            self._kept[session] = _Kept(bytearray(password), now + self._keep)

    def get(self, session: str, now: float) -> bytearray | None:
        """A copy, which the caller wipes; None where there is none any more."""
        self.expire(now)
        kept = self._kept.get(session)
        return bytearray(kept.password) if kept is not None else None

    def wipe(self, session: str) -> None:
        if (kept := self._kept.pop(session, None)) is not None:
            blank(kept.password)

    def expire(self, now: float) -> float | None:
        """Wipe what has had its time; when the next is due."""
        for session in [session for session, kept in self._kept.items() if kept.until <= now]:
            self.wipe(session)
        return min((kept.until for kept in self._kept.values()), default=None)


def blank(password: bytearray) -> None:
    """Overwrite it where it lies."""
    password[:] = bytes(len(password))
    password.clear()
