"""Which sink gets which notice, when, how often it is tried, and when it is given up. No I/O; time is an argument."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time, timedelta, tzinfo
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from holdfast.model.notices import Notice
from holdfast.model.sink import Sink

FIRST_PAUSE = 5.0
LONGEST_PAUSE = 3600.0
#: What a receiver may ask for at most.
LONGEST_RETRY_AFTER = 86400.0
#: Nothing is put off for longer: what is due beyond this was written before the clock was set back.
FARTHEST = 2 * 86400.0


class Answer(NamedTuple):
    """What came of one try to send something."""

    sent: bool
    error: str = ""
    permanent: bool = False
    """Trying again would be refused again."""
    retry_after: float | None = None
    """So many seconds were asked for by the receiver."""


class Standing(NamedTuple):
    """What is to be remembered of a row after a try. Without `due_at` and `dead_at` it was sent."""

    attempts: int
    error: str | None = None
    due_at: float | None = None
    dead_at: float | None = None


def wanted_by(notice: Notice, sinks: Iterable[Sink]) -> list[Sink]:
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
    """Whether a completion is bad news: anything but an exit with a code that counts as success."""
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
    # In the night in which an hour comes twice, the end is in the same one of the two.
    end = datetime.combine(day, time(hour, rest, fold=here.fold if is_today else 0), zone)
    return max(at, end.timestamp())


def is_due(due_at: float, now: float) -> bool:
    return due_at <= now or due_at > now + FARTHEST


def pause(attempts: int) -> float:
    """Between a try that failed, the so-manieth, and the next."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempts - 1, 30))


def judge(sink: Sink, attempts: int, answer: Answer, now: float, zone: tzinfo | None = None) -> Standing:
    """How a row stands after a try; `attempts` counts those before it."""
    attempts += 1
    if answer.sent:
        return Standing(attempts)
    if answer.permanent or attempts >= sink.tries:
        return Standing(attempts, answer.error, dead_at=now)
    asked = min(answer.retry_after or 0.0, LONGEST_RETRY_AFTER)
    due_at = not_before(sink, now + max(pause(attempts), asked), zone)
    return Standing(attempts, answer.error, due_at=due_at)
