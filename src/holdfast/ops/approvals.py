"""Operations on approvals and on the audit log."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import ApprovalRef, Base64, Flag, Integer, Object, SessionName, Text
    from holdfast.ops.records import ApprovalFields, VerifiedFields

_ID = "Its id, or a unique prefix."


class ApprovalReply(Record):
    approval: ApprovalFields = field()


class Approvals(Operation):
    """Requests for approval that are pending, and approvals that stand."""

    all: Flag = field(False, help="Also those that are over; for a list alone.")
    session: SessionName | None = field(None, help="Only those of this session.")
    follow: Flag = field(
        False, help="Each pending request, then each that changes. The client shows them to an approver."
    )

    class Reply(Record):
        approvals: list[ApprovalFields] = field()

    traits = Traits(route="GET /approvals", http_name="listApprovals", streams=True)


class Approve(Operation):
    """Approve a request."""

    id: ApprovalRef = field(longest=64, required_text=True, help=_ID)
    scope: Literal["once", "session", "always"] = field("once", help="For how long.")
    by: Text | None = field(None, longest=256, help="Who decided.")

    Reply = ApprovalReply
    traits = Traits(
        completes=True,
        route="POST /approvals/{id}/approve",
        http_name="approve",
        returns="approval",
        positional=("id", "scope"),
        names={"id": "approval"},
    )


class Deny(Operation):
    """Deny a request, or revoke what was approved."""

    id: ApprovalRef = field(longest=64, required_text=True, help=_ID)
    by: Text | None = field(None, longest=256, help="Who decided.")

    Reply = ApprovalReply
    traits = Traits(
        completes=True,
        route="POST /approvals/{id}/deny",
        http_name="deny",
        returns="approval",
        positional=("id",),
        names={"id": "approval"},
    )


class ApprovalShown(Operation):
    """Say that an approver can see a request now."""

    id: ApprovalRef = field(longest=64, required_text=True, help=_ID)

    traits = Traits(
        route="POST /approvals/{id}/shown", http_name="approvalShown", positional=("id",), names={"id": "approval"}
    )


class ApprovalPassword(Operation):
    """Type the password that sudo asks for. It is kept in memory alone, for a short time."""

    id: ApprovalRef = field(longest=64, required_text=True, help=_ID)
    data: Base64 = field(longest=8192, required_text=True, help="What was typed.")
    by: Text | None = field(None, longest=256, help="Who typed it.")

    Reply = ApprovalReply
    traits = Traits(
        repeatable=False,
        route="POST /approvals/{id}/password",
        http_name="typePassword",
        returns="approval",
        positional=("id", "data"),
        names={"id": "approval", "data": "password"},
    )


class Askpass(Operation):
    """The password that a sudo in a held process needs; for the helper that sudo starts."""

    class Reply(Record):
        password: Base64 = field()

    traits = Traits(repeatable=False)


class Audit(Operation):
    """Entries of the audit log: decisions, and actions on processes of other sessions."""

    after: Integer | None = field(None, help="Those behind this number; the newest ones without.")
    limit: Integer = field(100, least=1, most=1000, help="So many of them at most.")
    verify: Flag = field(False, help="Check all of them, and say what was changed or is missing.")

    class Reply(Record):
        entries: list[Object] = field(help="Oldest first.")
        verified: VerifiedFields | None = field(None, help="With `verify`.")

    traits = Traits(scope=Scope.OPERATOR, waits=True, route="GET /audit", http_name="readAudit")
