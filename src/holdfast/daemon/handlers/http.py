"""http: open or shut the door for HTTP on loopback TCP, or tell where it is."""

from __future__ import annotations

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import BadValue
from holdfast.model.addresses import parse_address
from holdfast.ops.daemon import Http


async def handle(context: DaemonContext, call: Call, ask: Http) -> Message:
    what, listen = ask.what, ask.listen
    if listen is not None and what != "open":
        raise BadValue("an address goes with open")
    if what == "open":
        await context.tcp.open(parse_address(listen or "127.0.0.1:0"))
    elif what == "shut":
        await context.tcp.shut()
    address = context.tcp.address
    return {
        "url": address.url if address is not None else None,
        "token_file": context.paths.token,
        "socket": context.paths.socket,
    }
