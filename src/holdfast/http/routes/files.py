"""/api/v1/files: a file or a directory of a place, read or written as a stream."""

from __future__ import annotations

from typing import Any

from holdfast.errors import HoldfastError
from holdfast.http.negotiate import media_of
from holdfast.http.request import HttpRequest
from holdfast.http.responses import HttpRefusal, Response, Send, encoded_headers, json_response, problem_response
from holdfast.http.routing import OCTETS, Success, operation_route
from holdfast.ops.files import GetFile, PutFile

TAR = "application/x-tar"
_BYTES = {"type": "string", "format": "binary"}


async def put(request: HttpRequest) -> Response:
    """The body is used as it comes. If the client disconnects before its end, the target stays as it was."""
    media = media_of(request.header("content-type"))
    if media not in (TAR, OCTETS, ""):
        raise HttpRefusal(
            415, "unsupported", "the body has a type that is not accepted", next=f"send {TAR} or {OCTETS}"
        )
    ask = {**request.query, "format": "tar" if media == TAR else "file"}
    return json_response(await request.until_stopping(request.ask("put_file", ask, receive_data=request.next_piece)))


async def get(request: HttpRequest) -> Response:
    return FileResponse(request, {**request.query, "format": "tar" if request.media == TAR else "file"})


class FileResponse(Response):
    """The bytes of a file or an archive. An error before the first byte is a response of its own; later it cuts the
    connection before the end of the body.
    """

    def __init__(self, request: HttpRequest, ask: dict[str, Any]) -> None:
        super().__init__(200, b"", request.media)
        self._request = request
        self._ask = ask

    async def send(self, send: Send) -> None:
        is_begun = False

        async def begin() -> None:
            nonlocal is_begun
            if not is_begun:
                is_begun = True
                head = {"type": "http.response.start", "status": 200, "headers": encoded_headers(self.media, ())}
                await send(head)

        async def send_data(stream: str, offset: int, data: bytes) -> None:
            await begin()
            await send({"type": "http.response.body", "body": data, "more_body": True})

        try:
            await self._request.while_connected(self._request.ask("get_file", self._ask, send_data))
        except HoldfastError as error:
            if is_begun:
                raise
            problem = problem_response(error)
            self.status = problem.status
            await problem.send(send)
            return
        await begin()
        await send({"type": "http.response.body", "body": b""})


ROUTES = [
    operation_route(
        PutFile,
        put,
        query={name: one for name, one in PutFile.FIELDS.items() if name != "format"},
        uploads=(OCTETS, TAR),
        errors=(403, 404, 409, 415, 422, 507),
        about=f"The body is one file as it is, or with Content-Type: {TAR} an archive of a file or a directory.",
    ),
    operation_route(
        GetFile,
        get,
        without=("format",),
        errors=(404, 409, 422),
        replies={200: Success("The file, or an archive of it", {OCTETS: _BYTES, TAR: _BYTES})},
        about=f"Accept: {TAR} gives an archive, also of a directory; else the bytes of one file.",
    ),
]
