"""Operations that need nothing special: what is declared in `holdfast.ops` is the route."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from holdfast.http.request import HttpRequest
from holdfast.http.responses import Response, json_response
from holdfast.http.routing import JSON, Route, Serve, Success, operation_route
from holdfast.ops.approvals import ApprovalReply
from holdfast.ops.catalog import OPERATIONS
from holdfast.ops.declare import QUICK, Operation
from holdfast.ops.processes import Attached

#: What HTTP adds to the declaration: see `operation_route`.
_CHANGES: dict[str, dict[str, Any]] = {
    "list": {"defaults": {"limit": 1000}},
    "approve": {"defaults": {"by": "http"}},
    "deny": {"defaults": {"by": "http"}},
    "approval_password": {"defaults": {"by": "http"}, "errors": (507,)},
    "approval_shown": {"errors": (507,)},
    "attached": {"replies": {200: Success("It has ended", {JSON: Attached.Reply})}},
    "publish": {"errors": (507,)},
    "restart": {"errors": (422,)},
    "set_plugin": {"errors": (404, 507)},
    "sink_test": {"errors": (404,)},
    "sink_retry": {"needs_body": True},
    "ack": {"required": ("ids",)},
    "redact": {"required": ("texts",)},
    "rename_session": {"required": ("to",)},
    "transfer": {"required": ("to",)},
    "wait": {"required": ("processes",)},
}


def routes(except_for: Container[tuple[str, str]]) -> list[Route]:
    declared = [plain_route(operation) for operation in OPERATIONS.values() if operation.traits.route]
    return [route for route in declared if (route.method, route.path) not in except_for]


def plain_route(operation: type[Operation], **more: Any) -> Route:
    changes = {**_CHANGES.get(operation.op, {}), **more}
    if operation.Reply is ApprovalReply:  # the approval itself, not an object that holds it
        changes["replies"] = {200: Success("Done", {JSON: ApprovalReply.FIELDS["approval"]})}
    return operation_route(operation, _serve(operation, changes), **changes)


def _serve(operation: type[Operation], changes: dict[str, Any]) -> Serve:
    traits, defaults = operation.traits, changes.get("defaults", {})
    is_empty = not operation.Reply.FIELDS and "replies" not in changes
    # The operation that stops the daemon must not be cancelled because the daemon stops.
    may_take_long = (traits.time_limit is None or traits.time_limit > QUICK) and operation.op != "stop"

    async def serve(request: HttpRequest) -> Response:
        ask = request.ask(operation.op, {**defaults, **request.query, **await request.fields(), **request.path})
        reply = await (request.while_connected(ask) if may_take_long else ask)
        if is_empty:
            return Response(204)
        return json_response(reply["approval"] if operation.Reply is ApprovalReply else reply)

    return serve
