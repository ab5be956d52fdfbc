"""Hooks: commands of the owner that run on events.

`description.py` reads a hook, `run.py` runs it for one event, and `follow.py` lets each hook follow the event stream
from a cursor of its own.
"""
