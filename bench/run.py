"""What every measure is handed."""

from __future__ import annotations

from typing import NamedTuple

from bench.peers import Peers
from bench.scale import Scale


class Run(NamedTuple):
    scale: Scale
    peers: Peers
    child: list[str]
    """How to call the command that is held; see child/."""
    directory: str
    """Where instances and files are made, all on one file system. It is removed after the last measure."""
