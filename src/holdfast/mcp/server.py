"""The server of the SDK: the two tools as clients see them, and a handler for each request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp import types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp.shared.exceptions import MCPError

from holdfast.mcp import resources
from holdfast.mcp.calls import NOT_AN_OBJECT, Calls
from holdfast.mcp.peers import Context, is_modern
from holdfast.mcp.push import CHANNEL, ResourceWatch
from holdfast.tools.schemas import Schema, anthropic_schemas
from holdfast.version import VERSION

_MOST_SUBSCRIPTIONS = 100

INSTRUCTIONS = """\
Commands run with `terminal`; `process` manages those in the background. Start long work with background=true and \
notify_on_complete=true, then go on: you are notified of its end once, in `notices` of a later answer or as a message. \
Do not poll. With nothing else to do, call process(action="wait").
The first answer carries `session`. If this server is restarted, pass it as `session` to go on with your processes."""

_TITLES = {"terminal": "Run a command", "process": "Manage background processes"}
_SESSION: Schema = {
    "type": "string",
    "description": "Handle from an earlier answer, after a restart. Else leave it out.",
}
#: The fields that every answer has, and some that most have.
ENVELOPE: Schema = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "description": "The state: running, ended, ok, unchanged, error …"},
        "reason": {"type": "string"},
        "next": {"type": "string", "description": "What to do now."},
        "is_error": {"type": "boolean"},
        "session_id": {"type": "string", "description": "The process."},
        "exit_code": {"type": "integer"},
        "output": {"type": "string"},
        "offset": {"type": "integer", "description": "Byte of the log where the next read goes on."},
        "notices": {"type": "array", "description": "Notices, each shown once."},
        "session": {"type": "string", "description": "Handle of this session."},
    },
    "required": ["status", "reason", "next", "is_error"],
}


class HoldfastServer(Server[Any]):
    """Declares capabilities that the SDK does not find out by itself."""

    def __init__(self, calls: Calls, is_channel: bool) -> None:
        handlers = _Handlers(calls)
        super().__init__(
            "holdfast",
            title="holdfast",
            version=VERSION,
            instructions=INSTRUCTIONS,
            on_list_tools=handlers.list_tools,
            on_call_tool=calls.call,
            on_list_resources=handlers.list_resources,
            on_list_resource_templates=handlers.list_templates,
            on_read_resource=handlers.read_resource,
            on_subscribe_resource=handlers.subscribe,
            on_unsubscribe_resource=handlers.unsubscribe,
            on_subscriptions_listen=handlers.listen,
        )
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, handlers.set_level)
        self.middleware.append(_take_any_arguments)
        self._channel: dict[str, dict[str, Any]] | None = {CHANNEL: {}} if is_channel else None
        if is_channel:
            self.middleware.append(handlers.begin_channel)

    def create_initialization_options(self, *_: Any, **__: Any) -> InitializationOptions:
        return super().create_initialization_options(NotificationOptions(resources_changed=True), self._channel)

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        experimental = experimental_capabilities or self._channel
        return super().get_capabilities(
            notification_options, experimental, extensions, protocol_version=protocol_version
        )


class _Handlers:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def list_tools(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=declared_tools(self._calls.limit(ctx)))

    async def list_resources(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        session = self._calls.peer(ctx).session
        found = await resources.listed(session)
        if not is_modern(ctx):  # else there is no connection beyond this request
            self._calls.push(ctx).watch.follow(session)
        return types.ListResourcesResult(resources=found)

    async def list_templates(
        self, ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        text = await resources.read(self._calls.peer(ctx), uri)
        content = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[content])

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        uri = str(params.uri)
        session, process, _ = await resources.find(self._calls.peer(ctx), uri)
        watch = self._calls.push(ctx).watch
        if watch.size >= _MOST_SUBSCRIPTIONS:
            what = f"more than {_MOST_SUBSCRIPTIONS} subscriptions: unsubscribe from some first"
            raise MCPError(types.INVALID_PARAMS, what)
        watch.subscribe(session, process, uri)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._calls.push(ctx).watch.unsubscribe(str(params.uri))
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Subscribing in the newest protocol: one request, which stays open."""
        bus = InMemorySubscriptionBus()
        peer = self._calls.peer(ctx)
        uris = (params.notifications.resource_subscriptions or [])[:_MOST_SUBSCRIPTIONS]
        found = {uri: await resources.find(peer, uri) for uri in uris}

        async def updated(uri: str) -> None:
            await bus.publish(ResourceUpdated(uri))

        async def list_changed() -> None:
            await bus.publish(ResourcesListChanged())

        async with ResourceWatch(updated, list_changed) as watch:
            for uri, (session, process, _) in found.items():
                watch.subscribe(session, process, uri)
            if params.notifications.resources_list_changed:
                watch.follow(peer.session)
            return await ListenHandler(bus)(ctx, params)

    async def set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        push = self._calls.push(ctx)
        push.uses(self._calls.peer(ctx).session)
        push.set_level(params.level)
        return types.EmptyResult()

    async def begin_channel(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Notices are sent once the client has initialized."""
        made = await call_next(ctx)
        if ctx.method not in ("initialize", "server/discover"):
            self._calls.push(ctx).uses(self._calls.peer(ctx).session)
        return made


async def _take_any_arguments(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Arguments of a wrong type are answered by the tools, not by an error of the protocol."""
    if ctx.method == "tools/call" and isinstance(ctx.params, Mapping):
        ctx = replace(ctx, params=_acceptable(ctx.params))
    return await call_next(ctx)


def _acceptable(params: Mapping[str, Any]) -> dict[str, Any]:
    lenient = dict(params)
    if not isinstance(lenient.get("name"), str):
        lenient["name"] = ""
    arguments = lenient.get("arguments")
    if arguments is not None and not isinstance(arguments, Mapping):
        lenient["arguments"] = {NOT_AN_OBJECT: arguments}
    return lenient


def declared_tools(limit: float) -> list[types.Tool]:
    """The two tools, for calls with this time limit in seconds."""
    return [_tool(schema, limit) for schema in anthropic_schemas()]


def _tool(schema: dict[str, Any], limit: float) -> types.Tool:
    name, parameters = schema["name"], schema["input_schema"]
    parameters["properties"]["session"] = dict(_SESSION)
    timeout = parameters["properties"]["timeout"]
    timeout["description"] = {
        "terminal": f"Seconds. Foreground: window before it goes on in the background (at most {limit:g}). "
        "Background: it is killed after that.",
        "process": f"Seconds, at most {limit:g}.",
    }[name]
    return types.Tool(
        name=name,
        title=_TITLES[name],
        description=schema["description"],
        input_schema=parameters,
        output_schema=ENVELOPE,
        annotations=_hints(_TITLES[name]),
    )


def _hints(title: str) -> types.ToolAnnotations:
    """A command can do anything, and so can input or a restart."""
    return types.ToolAnnotations(
        title=title, read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    )
