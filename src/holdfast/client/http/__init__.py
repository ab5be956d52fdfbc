"""A client that speaks HTTP to the daemon: the same requests and replies as over its socket.

`link.py` is the blocking link and `aio.py` that for asyncio. `exchange.py` makes the bytes of a request, and
`parser.py` reads responses; both do no I/O.
"""
