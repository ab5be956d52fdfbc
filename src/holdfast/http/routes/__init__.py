"""What there is, a module for each kind of thing. A route whose operation the daemon does not have is left out.

Events, the inbox, MCP and the ingest of the bridge get a module here, and a line below, when they come.
"""

from __future__ import annotations

from holdfast.daemon.handlers import HANDLERS
from holdfast.http.routes import attach, daemon, health, log, many, processes, sessions, steering
from holdfast.http.table import Route

ROUTES: list[Route] = [
    route
    for module in (processes, log, steering, attach, many, sessions, daemon, health)
    for route in module.ROUTES
    if not route.needs or route.needs in HANDLERS
]
