"""A client for what is looked at again and again."""

from __future__ import annotations

from holdfast.client.sync import Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.link import Link


class Watcher(Client):
    """A client that does not start a daemon that was stopped: its requests raise DaemonStopped until another starts it.

    There is a daemon when it is made.
    """

    def open_link(self, resume: float | None = None) -> Link:
        return super().open_link(0.0)
