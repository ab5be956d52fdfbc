"""redact: texts as a model may see them."""

from __future__ import annotations

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import BadValue
from holdfast.ops.daemon import Redact


async def handle(context: DaemonContext, call: Call, ask: Redact) -> Message:
    if ask.texts is None:
        raise BadValue("the texts are missing")
    return {"texts": await context.secrets.mask(ask.texts)}
