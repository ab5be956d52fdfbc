"""What there is, a module for each kind of thing. A route whose operation the daemon does not have is left out.

The inbox and MCP get a module here, and a line below, when they come.
"""

from __future__ import annotations

from holdfast.daemon.handlers import HANDLERS
from holdfast.http.routes import (
    approvals,
    attach,
    daemon,
    events,
    health,
    log,
    many,
    processes,
    pub,
    search,
    sessions,
    sinks,
    steering,
    top,
)
from holdfast.http.table import Route

ROUTES: list[Route] = [
    route
    for module in (
        processes,
        log,
        search,
        steering,
        attach,
        many,
        sessions,
        sinks,
        events,
        pub,
        top,
        daemon,
        health,
        approvals,
    )
    for route in module.ROUTES
    if not route.needs or route.needs in HANDLERS
]
