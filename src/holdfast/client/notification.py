"""What a session is told, as the daemon tells it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.wire.frames import Message


class Notification:
    """One piece of news. It is told again until it is acknowledged (`ack`), and never after that.

    `key` is the same for the same news, whatever was restarted in between. `text` is what a model is shown, `summary`
    one line for people.
    """

    __slots__ = ("fields",)

    def __init__(self, fields: Message) -> None:
        self.fields = fields

    def to_json(self) -> Message:
        """The notification object."""
        return self.fields

    def __repr__(self) -> str:
        return f"<Notification {self.id} {self.kind} of {self.process}>"

    @property
    def id(self) -> str:
        return str(self.fields["id"])

    @property
    def key(self) -> str:
        return str(self.fields["key"])

    @property
    def kind(self) -> str:
        """completion, watch_match, watch_disabled, watch_overflow_tripped, watch_overflow_released, progress, ready,
        stalled, deadline or input_needed.
        """
        return str(self.fields["kind"])

    @property
    def process(self) -> str | None:
        """The id of the process; None where it is about several."""
        found = self.fields["process"]
        return str(found) if found is not None else None

    @property
    def session(self) -> str:
        return str(self.fields["session"])

    @property
    def origin(self) -> dict[str, Any] | None:
        """What was given as `origin` when the process was started."""
        found: dict[str, Any] | None = self.fields["origin"]
        return found

    @property
    def at(self) -> float:
        return float(self.fields["at"])

    @property
    def text(self) -> str:
        return str(self.fields["text"])

    @property
    def summary(self) -> str:
        return str(self.fields["summary"])

    @property
    def data(self) -> dict[str, Any]:
        """The fields of its kind."""
        found: dict[str, Any] = self.fields["data"]
        return found
