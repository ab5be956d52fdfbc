"""What every backend offers the daemon."""

from __future__ import annotations

import socket
from typing import Protocol


class Backend(Protocol):
    """A place where commands run, with one keeper in it."""

    @property
    def name(self) -> str:
        """What process objects call it."""

    @property
    def place(self) -> str:
        """The directory with the keeper's bundles, readable from here."""

    async def connect(self) -> socket.socket:
        """A new control stream to the keeper, which is started first where there is none.

        Called again whenever the last one was cut. Raises OSError when there is no keeper to be had just now.
        """

    async def connect_depot(self) -> socket.socket:
        """A new line for descriptors to the keeper that is there. Raises OSError when there is none."""
