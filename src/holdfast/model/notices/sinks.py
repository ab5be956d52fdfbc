"""Sinks: external receivers of notices. Which notices each gets and when, retries, and how addresses are hidden.

No I/O; time is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, time, timedelta, tzinfo
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, get_args

from holdfast.model.events import Kind, Notice
from holdfast.records import Struct

Way = Literal["apprise", "webhook", "desktop"]
Outcomes = Literal["any", "failure", "success"]

KINDS: tuple[Kind, ...] = get_args(Kind)
OUTCOMES: tuple[Outcomes, ...] = get_args(Outcomes)
#: The kinds that a sink gets by default: all but periodic ones.
DEFAULT_KINDS: frozenset[Kind] = frozenset(KINDS) - {"progress"}


class Quiet(Struct, frozen=True):
    """Hours of the local day in which nothing is sent: minutes since midnight; `end` is excluded."""

    start: int
    end: int

    def holds(self, minute: int) -> bool:
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def __str__(self) -> str:
        return f"{self.start // 60:02}:{self.start % 60:02}-{self.end // 60:02}:{self.end % 60:02}"


DEFAULT_TRIES = 20


class Secret(NamedTuple):
    """A text that must not be shown: given in the configuration, or read from a variable or a file when needed."""

    text: str | None = None
    env: str | None = None
    file: str | None = None

    def __repr__(self) -> str:
        return "Secret(…)"


class Sink(Struct, frozen=True):
    name: str
    way: Way
    address: Secret = Secret()
    """An Apprise URL or the address of a webhook; nothing for the desktop."""
    secret: Secret = Secret()
    """What a webhook is signed with."""
    kinds: frozenset[Kind] = DEFAULT_KINDS
    sessions: tuple[str, ...] = ("*",)
    """Patterns as in a shell."""
    outcomes: Outcomes = "any"
    """Which completions."""
    quiet: Quiet | None = None
    tries: int = DEFAULT_TRIES
    enabled: bool = True


FIRST_PAUSE = 5.0
LONGEST_PAUSE = 3600.0
#: The longest `Retry-After` that is honoured.
LONGEST_RETRY_AFTER = 86400.0
#: No delivery is delayed for longer: a later time was written before the clock was set back.
FARTHEST = 2 * 86400.0


class SendResult(Struct, frozen=True):
    """The result of one attempt to send."""

    sent: bool
    error: str = ""
    permanent: bool = False
    """A further attempt would be refused as well."""
    retry_after: float | None = None
    """The seconds that the receiver requested."""


class DeliveryState(Struct, frozen=True):
    """The state of an outgoing notice after an attempt. Without `due_at` and `dead_at` it was sent."""

    attempts: int
    error: str | None = None
    due_at: float | None = None
    dead_at: float | None = None


def sinks_for(notice: Notice, sinks: Iterable[Sink]) -> list[Sink]:
    return [sink for sink in sinks if wants(sink, notice)]


def wants(sink: Sink, notice: Notice) -> bool:
    if not sink.enabled or notice.kind not in sink.kinds:
        return False
    if not any(fnmatchcase(notice.session, pattern) for pattern in sink.sessions):
        return False
    if notice.kind != "completion" or sink.outcomes == "any":
        return True
    return is_failure(notice.data) == (sink.outcomes == "failure")


def is_failure(data: dict[str, Any]) -> bool:
    """Whether a completion is a failure: anything but an exit with a code that counts as success."""
    if isinstance(success := data.get("succeeded"), bool):
        return not success
    return data.get("reason") != "exited" or data.get("exit_code") != 0


def not_before(sink: Sink, at: float, zone: tzinfo | None = None) -> float:
    """The first time from `at` on outside of the sink's quiet hours, by the clock of `zone` (None: of this machine)."""
    if sink.quiet is None:
        return at
    here = datetime.fromtimestamp(at, zone)
    minute = here.hour * 60 + here.minute
    if not sink.quiet.holds(minute):
        return at
    hour, rest = divmod(sink.quiet.end, 60)
    is_today = minute < sink.quiet.end
    day = here.date() if is_today else here.date() + timedelta(days=1)
    # In the night in which an hour is repeated, the end is in the same repetition.
    end = datetime.combine(day, time(hour, rest, fold=here.fold if is_today else 0), zone)
    return max(at, end.timestamp())


def is_due(due_at: float, now: float) -> bool:
    return due_at <= now or due_at > now + FARTHEST


def pause(attempts: int) -> float:
    """Seconds between a failed attempt and the next; `attempts` counts those so far."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempts - 1, 30))


def judge(sink: Sink, attempts: int, answer: SendResult, now: float, zone: tzinfo | None = None) -> DeliveryState:
    """The state after an attempt; `attempts` counts those before it."""
    attempts += 1
    if answer.sent:
        return DeliveryState(attempts)
    if answer.permanent or attempts >= sink.tries:
        return DeliveryState(attempts, answer.error, dead_at=now)
    asked = min(answer.retry_after or 0.0, LONGEST_RETRY_AFTER)
    due_at = not_before(sink, now + max(pause(attempts), asked), zone)
    return DeliveryState(attempts, answer.error, due_at=due_at)


class Outgoing(Struct, frozen=True):
    """A notice for a sink, as it is stored."""

    seq: int
    sink: str
    key: str
    body: dict[str, Any]
    """The notification object."""
    at: float
    due_at: float
    attempts: int = 0
    last_error: str | None = None
    dead_at: float | None = None


class Settled(NamedTuple):
    """The result of an attempt, to be written in the transaction of its event."""

    row: Outgoing
    state: DeliveryState
    at: float


HIDDEN = "…"
#: Shorter parts of an address are not secret, and hiding them would make messages unreadable.
_SHORTEST_SECRET = 4
_SECRET_BOUNDS = re.compile(r"[/:@?&=,;#\s]+")


def shown_address(address: str) -> str:
    """The part of an address that may be shown: the host of http and https, the scheme of others."""
    scheme, mark, _ = address.partition("://")
    if not mark or not scheme.isalnum():
        return HIDDEN
    if scheme not in ("http", "https"):
        return f"{scheme}://{HIDDEN}"
    try:
        from urllib.parse import urlsplit

        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return f"{scheme}://{HIDDEN}"
    rest = "" if parts.path in ("", "/") and not parts.query else f"/{HIDDEN}"
    return f"{scheme}://{parts.hostname or HIDDEN}{port}{rest}"


def without(text: str, secrets: Iterable[str], address: str = "") -> str:
    """The text with every secret hidden, and every part of the address that `shown_address` hides."""
    pieces = {secret for secret in secrets if secret} | _pieces(address)
    for piece in sorted(pieces, key=len, reverse=True):
        text = text.replace(piece, HIDDEN)
    return text


def _pieces(address: str) -> set[str]:
    if not address:
        return set()
    from urllib.parse import unquote

    scheme, _, rest = address.partition("://")
    shown = shown_address(address)
    found = {piece for piece in _SECRET_BOUNDS.split(rest) if len(piece) >= _SHORTEST_SECRET}
    found |= {unquote(piece) for piece in found} | {address}
    return {piece for piece in found if piece not in shown and piece != scheme}
