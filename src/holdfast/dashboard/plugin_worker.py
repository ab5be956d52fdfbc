"""The process of a plugin's router: `python -m holdfast.dashboard.plugin_worker NAME DIRECTORY FILE`.

It imports the file and serves its `router`, on connections that the daemon passes to it. A file that cannot be imported
is served as an error that says why. The process ends with its input.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib.util
import inspect
import json
import logging
import os
import re
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote

from holdfast.extras import package_hint
from holdfast.records import Struct
from holdfast.wire.http_worker import serve_http
from holdfast.wire.worker import WorkerLink, lower_priority

AsgiApp: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]
_MOST_BODY = 16 << 20
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class RouterRequest(Struct, frozen=True):
    """What a function of a table of routes gets."""

    method: str
    path: str
    parameters: dict[str, str]
    """What stands in the path for `{NAME}`."""
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Raises ValueError."""
        return json.loads(self.body)


class RouterSocket:
    """What a function of a route `WEBSOCKET /path` gets: an open WebSocket. Iterating over it gives its messages."""

    def __init__(self, scope: Any, parameters: dict[str, str], receive: Any, send: Any) -> None:
        self.path: str = scope["path"]
        self.parameters = parameters
        self.query = _query(scope)
        self.headers = _header_table(scope)
        self._receive, self._send = receive, send

    def __aiter__(self) -> RouterSocket:
        return self

    async def __anext__(self) -> str | bytes:
        """Ends when the client has disconnected."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise StopAsyncIteration
        text: str | bytes = message["text"] if message.get("text") is not None else message["bytes"]
        return text

    async def send(self, message: Any) -> None:
        """A text or bytes as they are; any other value as JSON."""
        if isinstance(message, bytes):
            await self._send({"type": "websocket.send", "bytes": message})
        else:
            text = message if isinstance(message, str) else json.dumps(message)
            await self._send({"type": "websocket.send", "text": text})


class RouterTable:
    """A router that is a table: `{"GET /status": function}`. A function returns JSON, bytes, or (status, JSON).

    `{"WEBSOCKET /ticks": function}`: a coroutine function, which has the WebSocket until it returns.
    """

    def __init__(self, table: Mapping[str, Callable[[Any], Any]]) -> None:
        self._routes = [(*_route(key), function) for key, function in table.items()]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)
        if scope["type"] != "http":
            return
        try:
            status, value = await self._answer(scope, receive)
        except Exception as failed:  # noqa: BLE001 - a request that fails ends nothing but itself
            traceback.print_exc()
            status, value = 500, _problem(500, f"{type(failed).__name__}: {failed}")
        is_raw = isinstance(value, bytes)
        body = value if is_raw else json.dumps(value).encode()
        media = b"application/octet-stream" if is_raw else b"application/json"
        headers = [(b"content-type", media), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _serve_socket(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()  # the request to connect
        for method, pattern, function in self._routes:
            if method == "WEBSOCKET" and (found := pattern.fullmatch(scope["path"])) is not None:
                parameters = {name: unquote(value) for name, value in found.groupdict().items()}
                await send({"type": "websocket.accept"})
                code = 1000
                try:
                    await function(RouterSocket(scope, parameters, receive, send))
                except OSError:
                    return  # the client has disconnected
                except Exception:  # noqa: BLE001 - a WebSocket that fails ends nothing but itself
                    traceback.print_exc()
                    code = 1011
                with suppress(OSError):
                    await send({"type": "websocket.close", "code": code})
                return
        await send({"type": "websocket.close"})  # refused

    async def _answer(self, scope: Any, receive: Any) -> tuple[int, Any]:
        path, methods = scope["path"], set()
        for method, pattern, function in self._routes:
            if (found := pattern.fullmatch(path)) is None:
                continue
            methods.add(method)
            if method == scope["method"]:
                parameters = {name: unquote(value) for name, value in found.groupdict().items()}
                return _split(await _called(function, await _request(scope, receive, parameters)))
        return (405, _problem(405, "this method is not allowed here")) if methods else (404, _problem(404, "not found"))


def _route(key: str) -> tuple[str, re.Pattern[str]]:
    method, _, path = key.partition(" ")
    pieces = _PLACEHOLDER.split(path)
    pattern = "".join(f"(?P<{one}>[^/]+)" if index % 2 else re.escape(one) for index, one in enumerate(pieces))
    return method, re.compile(pattern)


async def _request(scope: Any, receive: Any, parameters: dict[str, str]) -> RouterRequest:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body") or len(body) > _MOST_BODY:
            break
    return RouterRequest(scope["method"], scope["path"], parameters, _query(scope), _header_table(scope), body)


def _query(scope: Any) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), True))


def _header_table(scope: Any) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


async def _called(function: Callable[[RouterRequest], Any], request: RouterRequest) -> Any:
    """A plain function runs in a thread: it may wait."""
    if inspect.iscoroutinefunction(function):
        return await function(request)
    return await asyncio.to_thread(function, request)


def _split(value: Any) -> tuple[int, Any]:
    is_pair = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], int)
    return value if is_pair else (200, value)


def _problem(status: int, detail: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": "Plugin", "status": status, "code": "failed", "detail": detail}


def load(name: str, directory: str, file: str) -> AsgiApp:
    """The application of a plugin; one that says what is wrong where there is none."""
    try:
        return _app_of(_module(name, directory, file))
    except BaseException as failed:  # noqa: BLE001 - also SystemExit, which a script may raise
        traceback.print_exc()
        if isinstance(failed, ModuleNotFoundError) and failed.name:
            return RefusingRouter(f"{file} needs the Python package {failed.name}, which is not installed for holdfast")
        return RefusingRouter(f"{file} cannot be loaded: {type(failed).__name__}: {failed}")


def _module(name: str, directory: str, file: str) -> Any:
    path = os.path.join(directory, file)
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(f"dashboard_plugin_{name.replace('-', '_')}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if patterns := getattr(module, "EVENTS", None):
        from holdfast.events import bridge

        bridge.start(patterns=patterns)
    return module


def _app_of(module: Any) -> AsgiApp:
    router = getattr(module, "router", None)
    if isinstance(router, Mapping):
        return RouterTable(router)
    if hasattr(router, "include_router") and hasattr(router, "routes"):
        return _fastapi_app(router)
    if callable(router):
        return router  # type: ignore[no-any-return]
    if router is not None and importlib.util.find_spec("fastapi") is None:
        return RefusingRouter(
            f"its router is made with FastAPI, which is not installed for holdfast: {package_hint('fastapi')}"
        )
    return RefusingRouter(
        "it exports no `router`: an ASGI application, a table of functions, or an APIRouter of FastAPI"
    )


def _fastapi_app(router: Any) -> AsgiApp:
    from fastapi import FastAPI

    app = FastAPI(openapi_url=None)
    app.include_router(router)
    return app  # type: ignore[no-any-return]


class RefusingRouter(RouterTable):
    """The router of a plugin that has none: every request gets the reason."""

    def __init__(self, why: str) -> None:
        super().__init__({})
        self._why = why

    async def _answer(self, scope: Any, receive: Any) -> tuple[int, Any]:
        return 503, _problem(503, self._why)


def _end_with_daemon() -> None:
    """A router that hangs does not see that its input has ended."""
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def main(arguments: list[str]) -> None:
    name, directory, file = arguments
    _end_with_daemon()
    link = WorkerLink()
    lower_priority("plugin", name)
    logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
    app = load(name, directory, file)
    asyncio.run(serve_http(link, app, _MOST_BODY))
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
