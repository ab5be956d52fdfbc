"""`python -m holdfast.mcp`: the daemon's MCP worker. Connections come over its standard input."""

from __future__ import annotations

import asyncio

from holdfast.mcp.worker import serve
from holdfast.title import set_title
from holdfast.wire.worker import WorkerLink

if __name__ == "__main__":
    set_title("mcp")
    asyncio.run(serve(WorkerLink()))
