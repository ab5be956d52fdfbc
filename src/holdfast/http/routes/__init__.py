"""All routes: those that an operation declares, and those that HTTP serves in a way of its own."""

from __future__ import annotations

from holdfast.http.routes import (
    approvals,
    attach,
    cast,
    dashboard,
    events,
    extensions,
    files,
    health,
    inbox,
    log,
    mcp,
    plain,
    processes,
    pub,
)
from holdfast.http.routing import Route

_SPECIAL = [
    route
    for module in (
        processes,
        log,
        files,
        attach,
        cast,
        inbox,
        events,
        pub,
        health,
        approvals,
        dashboard,
        extensions,
        mcp,
    )
    for route in module.ROUTES
]
#: A special route takes the place of the one that its operation declares.
ROUTES: list[Route] = [*_SPECIAL, *plain.routes(except_for={(route.method, route.path) for route in _SPECIAL})]
