"""Probes of running processes: whether they are ready, have stalled, or wait for input.

`begin.py` starts them. `ready.py`, `stall.py` and `prompt.py` watch one run each; `log.py`, `port.py` and `http.py` are
the signs of readiness, each a coroutine that returns when the process is ready. `marks.py` records the findings.
"""
