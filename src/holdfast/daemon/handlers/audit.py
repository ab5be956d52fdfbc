"""audit: who decided what, and who touched what is not theirs; and whether the record of it is whole."""

from __future__ import annotations

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.ops.approvals import Audit
from holdfast.store import audit
from holdfast.wire import light_json


async def handle(context: DaemonContext, call: Call, ask: Audit) -> Message:
    """The newest entries, or those behind `after`, oldest first. With `verify`, all of them are gone through."""
    after, limit = ask.after, ask.limit
    if after is None:
        entries = await context.store.read(lambda db: audit.last(db, limit))
    else:
        entries = await context.store.read(lambda db: audit.read(db, after, limit))
    answer: Message = {"entries": [_shown(entry) for entry in entries]}
    if ask.verify:
        answer["verified"] = (await context.store.read(audit.verify))._asdict()
    return answer


def _shown(entry: audit.Entry) -> Message:
    try:
        said = light_json.loads(entry.text)
    except ValueError:
        said = None
    fields = said if isinstance(said, dict) else {"what": "unreadable"}
    return {**fields, "seq": entry.seq, "at": entry.at, "hash": entry.hash}
