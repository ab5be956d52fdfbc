"""A notification of a session, as the daemon describes it."""

from __future__ import annotations

from holdfast.client.process import FieldView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.field_types import NotificationAttributes as _Attributes
else:
    _Attributes = object


class Notification(FieldView, _Attributes):
    """A notification. It is delivered until it is acknowledged (`ack`), and never after that.

    Every field is an attribute. `key` is the same for the same notification, also after any restart. `text` is what a
    model is shown, `summary` one line for users. `kind` is completion, watch_match, watch_disabled,
    watch_overflow_tripped, watch_overflow_released, progress, ready, stalled, deadline or input_needed.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Notification {self.id} {self.kind} of {self.process}>"
