"""Data types and rules. No I/O, no clock; imports only `errors`.

`process.py` is a process as the daemon knows it, and `lifecycle.py` the table of its states. `notices/` and `probes/`
have the rules of the daemon's packages of these names.
"""
