"""`python -m holdfast.mcp FD`: the worker of the daemon for `/mcp`. FD is the line on which connections come."""

from __future__ import annotations

import asyncio
import socket
import sys

from holdfast.mcp.worker import serve

if __name__ == "__main__":
    asyncio.run(serve(socket.socket(fileno=int(sys.argv[1]))))
