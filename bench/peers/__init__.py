"""Others who start commands in the background, measured beside us. Each is None where it cannot be had."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from bench.peers.hermes import Hermes, install_hermes
from bench.peers.spooler import Spooler, install_spooler


class Peers(NamedTuple):
    hermes: Hermes | None
    spooler: Spooler | None


@contextmanager
def open_peers(with_peers: bool) -> Iterator[Peers]:
    """The peers, installed if need be and running; gone when the block ends."""
    with ExitStack() as stack:
        hermes = stack.enter_context(Hermes()) if with_peers and install_hermes() else None
        spooler = stack.enter_context(Spooler()) if with_peers and install_spooler() else None
        yield Peers(hermes, spooler)
