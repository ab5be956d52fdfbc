"""From a request to its response: check the client, find the route, serve it. An ASGI application."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.log import note
from holdfast.errors import HoldfastError
from holdfast.http import guard, pages, plugin_routes
from holdfast.http.request import HttpRequest
from holdfast.http.responses import ClientGone, Response, problem_response
from holdfast.http.routes import ROUTES
from holdfast.http.routing import RouteTable
from holdfast.http.websocket import WebSocket


class HttpApp:
    def __init__(self, context: DaemonContext) -> None:
        self._context = context
        self._routes = RouteTable(ROUTES)
        #: Done when the daemon stops: requests that wait or stream end then.
        self.stopping: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)

    async def _serve(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        request = HttpRequest(self._context, scope, receive, self.stopping)
        is_sent = False
        try:
            response = await self._response(request)
            await response.send(send)
            is_sent = response.status < 400
        except HoldfastError:
            return  # the client disconnected, or a stream is cut: the client can resume it
        finally:
            request.settle(is_sent)

    async def _response(self, request: HttpRequest) -> Response:
        try:
            is_page = pages.is_page(request)
            self._check(request, (), is_page)
            if is_page:
                return await pages.serve(request)
            if request.raw_path.startswith(plugin_routes.PREFIX):
                return await plugin_routes.serve(request)
            if request.method == "OPTIONS":
                return Response(204, headers=(("allow", self._routes.allowed(request.raw_path)),))
            found = self._routes.find(request.method, request.raw_path)
            request.prepare(*found)
            assert found.route.serve is not None
            return await found.route.serve(request)
        except ClientGone:
            raise
        except HoldfastError as error:
            return problem_response(error)
        except Exception:  # noqa: BLE001 - a failing request must not end more than itself
            return problem_response(_failed(request))

    async def _serve_socket(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        request = HttpRequest(self._context, scope, receive, self.stopping)
        socket = WebSocket(scope, receive, send)
        try:
            self._check(request, scope["subprotocols"])
            with self._context.pages.connection(request.page, scope["state"]["abort"]):
                if request.raw_path.startswith(plugin_routes.PREFIX):
                    await plugin_routes.serve_socket(request, socket)
                    return
                found = self._routes.find("WEBSOCKET", request.raw_path)
                request.prepare(*found)
                assert found.route.serve_socket is not None
                await found.route.serve_socket(request, socket)
        except ClientGone:
            return
        except HoldfastError as error:
            await socket.refuse(error)
        except Exception:  # noqa: BLE001 - likewise
            await socket.refuse(_failed(request))

    def _check(self, request: HttpRequest, subprotocols: list[str] | tuple[()], is_page: bool = False) -> None:
        state, path = request.scope["state"], request.raw_path
        token = self._context.tcp.token if state["tcp"] else None
        names = self._context.tls.names if request.is_secure else None
        publishes = path == guard.PUBLISH_PATH and self._may_publish(request, subprotocols)
        request.page = guard.check(
            request.headers, path, token, subprotocols, self._context.pages, is_page, names, publishes
        )
        if state["tcp"] and path not in guard.OPEN_PATHS and not is_page:
            state["has_token"]()

    def _may_publish(self, request: HttpRequest, subprotocols: list[str] | tuple[()]) -> bool:
        """By a token in the query, too: programs of others send it there. No query is ever logged."""
        given = parse_qsl(request.scope["query_string"].decode("latin-1"))
        offered = [value for name, value in given if name == "token"]
        return guard.may_publish(self._context.tcp.publish_token, request.headers, subprotocols, offered)


def _failed(request: HttpRequest) -> HoldfastError:
    note("request-failed", op=f"{request.method} {request.raw_path}", why=traceback.format_exc())
    return HoldfastError("the daemon failed on this request: see its log")
