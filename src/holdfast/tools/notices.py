"""News that ride on an answer: each is told once, acknowledged when the answer is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.client.notification import Notification
    from holdfast.tools.context import Context
    from holdfast.tools.envelope import Answer


async def ride(context: Context, made: Answer) -> Answer:
    """The answer with what the session is yet to be told. Without it where that fails: it is then told later."""
    limits = context.limits
    try:
        found = await context.client.inbox(session=context.session, limit=limits.notices + 1, take=True)
        told = found[: limits.notices]
        if told:
            value = await context.client.ack(*told, session=context.session)
            acked = set(value.get("acked") or ())
            told = [notice for notice in told if notice.id in acked]
    except HoldfastError:
        return made
    if not told:
        return made
    more = "more news comes with the next answer" if len(found) > len(told) else None
    made = _without_twice(made, told)
    return {**made, "notices": [notice.text for notice in told], **({"more_notices": more} if more else {})}


def _without_twice(made: Answer, told: list[Notification]) -> Answer:
    """A completion brings the end of the output: the answer to a poll need not bring it, too."""
    ends = {notice.process for notice in told if notice.kind == "completion"}
    if made.get("status") == "ended" and made.get("session_id") in ends and "output" in made:
        return {key: value for key, value in made.items() if key not in ("output", "source", "omitted_bytes")}
    return made


async def pending(context: Context) -> list[dict[str, str]]:
    """What is pending, for one who is told by other means, and acknowledges by hand."""
    found = await context.client.inbox(session=context.session, limit=context.limits.notices)
    return [{"id": notice.id, "text": notice.text} for notice in found]
