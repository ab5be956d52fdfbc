"""Passwords that may be reused for a short time: in memory only, wiped when they expire. No I/O."""

from __future__ import annotations

from holdfast.records import Struct


class _Kept(Struct, frozen=True):
    password: bytearray
    until: float


class PasswordCache:
    """One password per session. `now` is of a monotonic clock."""

    def __init__(self, keep: float) -> None:
        """`keep` is in seconds; 0 keeps nothing."""
        self._keep = keep
        self._kept: dict[str, _Kept] = {}

    def __repr__(self) -> str:
        return f"<PasswordCache with {len(self._kept)}>"

    def put(self, session: str, password: bytearray, now: float) -> None:
        """Keep a copy, in place of the one before."""
        self.wipe(session)
        if self._keep > 0:
            self._kept[session] = _Kept(bytearray(password), now + self._keep)

    def get(self, session: str, now: float) -> bytearray | None:
        """A copy, which the caller wipes; None when there is none any more."""
        self.expire(now)
        kept = self._kept.get(session)
        return bytearray(kept.password) if kept is not None else None

    def wipe(self, session: str) -> None:
        if (kept := self._kept.pop(session, None)) is not None:
            overwrite(kept.password)

    def expire(self, now: float) -> float | None:
        """Wipe expired passwords. Returns when the next one expires."""
        for session in [session for session, kept in self._kept.items() if kept.until <= now]:
            self.wipe(session)
        return min((kept.until for kept in self._kept.values()), default=None)


def overwrite(password: bytearray) -> None:
    """Overwrite it in place."""
    password[:] = bytes(len(password))
    password.clear()
