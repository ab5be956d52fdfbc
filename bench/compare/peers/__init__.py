"""The managers that are measured, a module each. Each `get` installs it if need be, or raises Unavailable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.compare.peer import Peer
from bench.compare.peers import hermes, ours, pm2, spooler, supervisord, tmux

OURS: tuple[type[Peer], ...] = (ours.InPython, ours.OnCommandLine)
#: Name -> from a cache directory to something that makes the peer in a scratch directory.
OTHERS: dict[str, Callable[[Path], Callable[[Path], Peer]]] = {
    "hermes-agent": hermes.get,
    "supervisord": supervisord.get,
    "tmux": tmux.get,
    "task-spooler": spooler.get,
    "pm2": pm2.get,
}
