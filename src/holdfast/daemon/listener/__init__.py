"""How requests come in: the Unix socket, HTTP on TCP, bridges, and the way from a request to its handler.

`dispatch.py` checks every request against its declaration, restricts it to what the caller may see (`scope.py`) and
calls the handler. `calls.py` is the lifecycle of one request.
"""
