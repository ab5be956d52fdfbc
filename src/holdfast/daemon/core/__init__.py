"""The state of the daemon and what changes it: registry, supervisor, recovery, restarts, timers.

`context.py` is what every handler gets. A change of a process is written first, then shown (`supervisor.py`).
"""
