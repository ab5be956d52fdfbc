"""/api/v1/processes/{id}/cast: output with its times as an asciinema recording, in pieces as it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.http.request import HttpRequest
from holdfast.http.responses import Response, StreamedResponse, Write
from holdfast.http.routes.log import discard
from holdfast.http.routing import Success, operation_route
from holdfast.model.cast import MEDIA, CastWriter
from holdfast.ops.declare import Operation, Traits, field

if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import ProcessRef


class Cast(Operation):
    """The output up to now with its times, as an asciinema recording (asciicast v2)."""

    process: ProcessRef = field(help="An id, a name, or a unique prefix of either (of an id 4 hex digits or more).")
    stream: Literal["out", "err"] = field("out", help="`err`: of a process that was started with `split`.")

    traits = Traits(reads=True, route="GET /processes/{process}/cast", http_name="getCast")


async def cast(request: HttpRequest) -> Response:
    process = request.find()
    ask = {"process": process.id, "stream": request.query.get("stream", "out")}
    details = await request.ask("inspect", {"process": process.id, "spec": True})
    begin = await request.ask("logs", {**ask, "from": 0, "bytes": 0}, discard)
    times = await request.ask("log_times", dict(ask))
    start = int(begin["start"])
    writer = CastWriter({**details["process"], "spec": details["spec"]}, times["times"], start)

    async def produce(write: Write) -> None:
        async def send(stream: str, offset: int, data: bytes) -> None:
            await write(writer.feed(offset, data))

        await write(writer.header())
        rest = {**ask, "from": start, "bytes": max(0, int(begin["total"]) - start)}
        await request.while_connected(request.ask("logs", rest, send))
        await write(writer.end())

    name = f'attachment; filename="{process.id}.cast"'
    return StreamedResponse(produce, MEDIA, (("content-disposition", name),))


ROUTES = [
    operation_route(
        Cast,
        cast,
        errors=(404, 409),
        replies={200: Success("The recording", {MEDIA: {"type": "string"}})},
        about="See docs/screen.md.",
    )
]
