"""The daemon: one asyncio process per instance that knows every process, answers clients and notifies sessions.

`run.py` is the composition root and reads from start to stop. `handlers/` has a module per group of operations. The
other sub-packages are the parts that handlers use; each says in its first line what it holds.
"""
