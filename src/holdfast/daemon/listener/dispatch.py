"""From a request to its handler: every request passes here, over the socket and over HTTP."""

from __future__ import annotations

from holdfast.daemon.approvals import operator_audit
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.handlers import HANDLERS
from holdfast.daemon.listener import scope
from holdfast.errors import Unsupported
from holdfast.ops.catalog import OPERATIONS


async def answer(context: DaemonContext, call: Call, op: str, ask: Message) -> Message:
    """Check the request, restrict it to what the caller may see, and call the handler.

    Raises Unsupported for an unknown operation, BadValue, Denied, and what the handler raises.
    """
    operation = OPERATIONS.get(op)
    if operation is None:
        raise Unsupported(f"unknown operation {op[:60]!r}")
    handler = HANDLERS[operation]
    if call.is_strict:
        scope.check_allowed(operation)
        request = operation.read(ask)
        scope.narrow(context, call, request)
        return await handler(context, call, request)
    request = operation.read(ask)
    noted = operator_audit.note(context, call, request) if operation.traits.audited else None
    try:
        return await handler(context, call, request)
    finally:
        if noted is not None:
            await noted
