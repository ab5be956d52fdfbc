"""A request for approval, as the daemon describes it."""

from __future__ import annotations

from holdfast.client.process import FieldView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.field_types import ApprovalAttributes as _Attributes
else:
    _Attributes = object


class Approval(FieldView, _Attributes):
    """A request for approval, and the decision once there is one. Every field is an attribute."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Approval {self.id} {self.state}: {self.command[:60]!r}>"
