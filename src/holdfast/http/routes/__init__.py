"""What there is, a module for each kind of thing. A route whose operation the daemon does not have is left out."""

from __future__ import annotations

from holdfast.http.routes import (
    approvals,
    attach,
    daemon,
    events,
    health,
    inbox,
    log,
    many,
    mcp,
    processes,
    pub,
    redact,
    search,
    sessions,
    sinks,
    steering,
    top,
)
from holdfast.http.table import Route
from holdfast.ops.catalog import OPERATIONS

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
        inbox,
        sinks,
        events,
        pub,
        redact,
        top,
        daemon,
        health,
        approvals,
        mcp,
    )
    for route in module.ROUTES
    if not route.needs or route.needs in OPERATIONS
]
