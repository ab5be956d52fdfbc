"""/api/dashboard/plugins and /api/dashboard/themes: the lists as pages and plugins of hermes-agent know them."""

from __future__ import annotations

from typing import Any

from holdfast import light_json
from holdfast.http.request import HttpRequest
from holdfast.http.responses import Response, json_response
from holdfast.http.routing import JSON, Route, Success


async def plugins(request: HttpRequest) -> Response:
    """Those that are enabled."""
    found = (await request.ask("plugins", {}))["plugins"]
    known = [_as_known(plugin) for plugin in found if plugin["enabled"]]
    return Response(200, light_json.dumps(known).encode(), JSON)


def _as_known(plugin: dict[str, Any]) -> dict[str, Any]:
    source = "bundled" if plugin["source"] == "shipped" else "user"
    tab = plugin["tab"] or {"path": f"/{plugin['name']}", "position": "end", "hidden": True}
    return {**plugin, "source": source, "tab": {key: value for key, value in tab.items() if value is not None}}


async def rescan(request: HttpRequest) -> Response:
    """Each list is read from the disk: there is nothing to do."""
    return json_response({"ok": True, "count": len((await request.ask("plugins", {}))["plugins"])})


async def themes(request: HttpRequest) -> Response:
    """Those that can be used. Which one is active is the choice of each browser."""
    found = [theme for theme in (await request.ask("themes", {}))["themes"] if theme["error"] is None]
    return json_response({"themes": found, "active": "default"})


def _route(path: str, name: str, summary: str, serve: Any) -> Route:
    replies = {200: Success("As hermes-agent defines", {})}
    return Route("GET", path, name, summary, replies, serve=serve, reads=True, is_described=False)


ROUTES = [
    _route("/api/dashboard/plugins", "hermesPlugins", "Enabled plugins", plugins),
    _route("/api/dashboard/plugins/rescan", "hermesRescan", "Number of plugins", rescan),
    _route("/api/dashboard/themes", "hermesThemes", "Themes", themes),
]
