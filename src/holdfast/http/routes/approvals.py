"""/api/v1/approvals: requests for approval, as a list or as server-sent events."""

from __future__ import annotations

from holdfast.http import sse
from holdfast.http.request import HttpRequest
from holdfast.http.responses import Response, Write, json_response
from holdfast.http.routing import EVENT_STREAM, JSON, Success, operation_route
from holdfast.ops.approvals import Approvals


async def approvals(request: HttpRequest) -> Response:
    if request.media != EVENT_STREAM:
        return json_response(await request.ask("approvals", request.query))
    return sse.event_stream(request, lambda write: _write_approvals(request, write))


async def _write_approvals(request: HttpRequest, write: Write) -> None:
    """Each pending request, then each that changes, for as long as the client is connected."""

    async def send(stream: str, offset: int, data: bytes) -> None:
        await write(sse.message(data.decode().strip(), None) if data else sse.HEARTBEAT)

    await request.ask("approvals", {"follow": True, "session": request.query.get("session")}, send)


ROUTES = [
    operation_route(
        Approvals,
        approvals,
        without=("follow",),
        replies={200: Success("The approvals", {JSON: Approvals.Reply, EVENT_STREAM: {"type": "string"}})},
        about="A client that reads the stream shows requests to an approver, and confirms that with POST …/shown. "
        "See docs/approvals.md.",
    )
]
