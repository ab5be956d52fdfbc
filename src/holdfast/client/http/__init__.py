"""A client that speaks HTTP to the daemon: the same requests and replies as over its socket.

`link.py` is the blocking link and `aio.py` that for asyncio. `exchange.py` finds the address and its token
and makes the bytes of a request; `parser.py` reads responses, without I/O.
"""
