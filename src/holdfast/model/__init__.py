"""Data types and rules. No I/O, no clock; imports only `errors`, `records` and `light_json`.

`process.py` is a process as the daemon knows it, `lifecycle.py` the table of its states, and `events.py` has the events
and the notice that follow from a change. `notices/` has the rules of notices, watches and sinks, `probes/` those of
readiness, prompts, stalls and usage.
"""
