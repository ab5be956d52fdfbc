"""From a request to its answer: who may ask, what is asked for, what comes back. An ASGI application."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping
from typing import Any

from holdfast.daemon.logbook import note
from holdfast.daemon.room import Room
from holdfast.errors import HoldfastError
from holdfast.http import guard
from holdfast.http.answers import Answer, refusal
from holdfast.http.problems import Gone
from holdfast.http.request import Request
from holdfast.http.routes import ROUTES
from holdfast.http.socket import Socket
from holdfast.http.table import Table


class App:
    def __init__(self, room: Room) -> None:
        self._room = room
        self._table = Table(ROUTES)
        #: Done when the daemon goes: whatever waits or streams ends then.
        self.stopping: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)

    async def _serve(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        request = Request(self._room, scope, receive, self.stopping)
        is_sent = False
        try:
            answer = await self._answer(request)
            await answer.send(send)
            is_sent = answer.status < 400
        except HoldfastError:
            return  # whoever asked is gone, or a stream is cut in the middle: it can be taken up again
        finally:
            request.settle(is_sent)

    async def _answer(self, request: Request) -> Answer:
        try:
            self._check(request, ())
            if request.method == "OPTIONS":
                return Answer(204, headers=(("allow", self._table.allowed(request.path)),))
            found = self._table.find(request.method, request.path)
            request.prepare(*found)
            assert found.route.serve is not None
            return await found.route.serve(request)
        except Gone:
            raise
        except HoldfastError as error:
            return refusal(error)
        except Exception:  # noqa: BLE001 - whatever a request brings up, it ends with the request
            note("request-failed", op=f"{request.method} {request.path}", why=traceback.format_exc())
            return refusal(HoldfastError("the daemon failed on this request: see its log"))

    async def _serve_socket(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        request = Request(self._room, scope, receive, self.stopping)
        socket = Socket(scope, receive, send)
        try:
            self._check(request, scope["subprotocols"])
            found = self._table.find("WEBSOCKET", request.path)
            request.prepare(*found)
            assert found.route.serve_socket is not None
            await found.route.serve_socket(request, socket)
        except Gone:
            return
        except HoldfastError as error:
            await socket.refuse(error)
        except Exception:  # noqa: BLE001 - likewise
            note("request-failed", op=f"WEBSOCKET {request.path}", why=traceback.format_exc())
            await socket.refuse(HoldfastError("the daemon failed on this request: see its log"))

    def _check(self, request: Request, subprotocols: list[str] | tuple[()]) -> None:
        on_tcp = request.scope["state"]["tcp"]
        token = self._room.tcp.token if on_tcp else None
        guard.check(request.headers, request.path, token, subprotocols)
