"""The server of the SDK, with what holdfast does for each request."""

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

from holdfast.mcp import asking, declared, resources
from holdfast.mcp.calling import NOT_AN_OBJECT, Calls
from holdfast.mcp.news import CHANNEL
from holdfast.mcp.peers import Context
from holdfast.mcp.watching import Watch
from holdfast.version import VERSION

_MOST_SUBSCRIPTIONS = 100


class HoldfastServer(Server[Any]):
    """Tells of its capabilities what the SDK does not find out by itself."""

    def __init__(self, calls: Calls, is_channel: bool) -> None:
        handlers = _Handlers(calls)
        super().__init__(
            "holdfast",
            title="holdfast",
            version=VERSION,
            instructions=declared.INSTRUCTIONS,
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
        return types.ListToolsResult(tools=declared.tools(self._calls.limit(ctx)))

    async def list_resources(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        session = self._calls.peer(ctx).session
        found = await resources.listed(session)
        if not asking.is_modern(ctx):  # else there is no connection beyond this request
            self._calls.live(ctx).watch.follow(session)
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
        watch = self._calls.live(ctx).watch
        if watch.size >= _MOST_SUBSCRIPTIONS:
            what = f"more than {_MOST_SUBSCRIPTIONS} subscriptions: unsubscribe from some first"
            raise MCPError(types.INVALID_PARAMS, what)
        watch.subscribe(session, process, uri)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._calls.live(ctx).watch.unsubscribe(str(params.uri))
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """What the newest protocol has in place of subscribing: one request, which lasts."""
        bus = InMemorySubscriptionBus()
        peer = self._calls.peer(ctx)
        wanted = (params.notifications.resource_subscriptions or [])[:_MOST_SUBSCRIPTIONS]
        found = {uri: await resources.find(peer, uri) for uri in wanted}

        async def updated(uri: str) -> None:
            await bus.publish(ResourceUpdated(uri))

        async def list_changed() -> None:
            await bus.publish(ResourcesListChanged())

        async with Watch(updated, list_changed) as watch:
            for uri, (session, process, _) in found.items():
                watch.subscribe(session, process, uri)
            if params.notifications.resources_list_changed:
                watch.follow(peer.session)
            return await ListenHandler(bus)(ctx, params)

    async def set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        live = self._calls.live(ctx)
        live.uses(self._calls.peer(ctx).session)
        live.set_level(params.level)
        return types.EmptyResult()

    async def begin_channel(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """News flows once the client has said hello."""
        made = await call_next(ctx)
        if ctx.method not in ("initialize", "server/discover"):
            self._calls.live(ctx).uses(self._calls.peer(ctx).session)
        return made


async def _take_any_arguments(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Arguments of a wrong kind are answered by the tools, in the one shape, and not by the protocol."""
    if ctx.method == "tools/call" and isinstance(ctx.params, Mapping):
        ctx = replace(ctx, params=_acceptable(ctx.params))
    return await call_next(ctx)


def _acceptable(params: Mapping[str, Any]) -> dict[str, Any]:
    taken = dict(params)
    if not isinstance(taken.get("name"), str):
        taken["name"] = ""
    arguments = taken.get("arguments")
    if arguments is not None and not isinstance(arguments, Mapping):
        taken["arguments"] = {NOT_AN_OBJECT: arguments}
    return taken
