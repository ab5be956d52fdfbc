"""plugins, set_plugin, themes: what extends the dashboard. The directories are read again with each request."""

from __future__ import annotations

import asyncio

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import DiskFull
from holdfast.ops.dashboard import Plugins, SetPlugin, Themes


async def list_plugins(context: DaemonContext, call: Call, ask: Plugins) -> Message:
    found = await asyncio.to_thread(context.plugins.all)
    return {"plugins": [plugin.to_wire() for plugin in found]}


async def set_plugin(context: DaemonContext, call: Call, ask: SetPlugin) -> Message:
    """It is on disk with the reply. The router of a plugin that is disabled has been ended."""
    try:
        plugin = await asyncio.to_thread(context.plugins.enable, ask.plugin, ask.enabled)
    except OSError as failed:
        raise DiskFull(f"the choice cannot be written: {failed.strerror}") from None
    if not plugin.is_enabled:
        await context.plugin_routers.end(plugin.name)
    return {"plugin": plugin.to_wire()}


async def list_themes(context: DaemonContext, call: Call, ask: Themes) -> Message:
    return {"themes": await asyncio.to_thread(context.themes.all)}
