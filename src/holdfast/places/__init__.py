"""Where commands run. A place starts a keeper, reaches it, and reads what the keeper and the kernel know there.

`base.py` is the contract of a place, `backend.py` that of a way to get places. `local.py` is this machine; `remote.py`
and `mirrored.py` are what other places have in common. The backends are in `backends/` and `clouds/`. `carry.py` makes
the runtime that is carried to a place, and `relay/` is what runs there for the daemon.
"""
