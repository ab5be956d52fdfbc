"""How requests arrive: the Unix socket, HTTP on TCP, bridges, and the way from a request to its handler.

`connection.py` is the lifecycle of one request: it is checked against its declaration, restricted to what the caller
may see (`scope.py`) and passed to the handler. `accepting.py` finds callers that run inside a held process.
"""
