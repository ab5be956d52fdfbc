"""Operations on approvals and on the audit log."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field
from holdfast.ops.start import ApprovalOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import ApprovalRef, Base64, Flag, Integer, Object, SessionName, Text
    from holdfast.ops.records import ApprovalFields, VerifiedFields

_ID = "The id of the request, or a unique prefix of it (4 hex digits or more)."


class ApprovalReply(Record):
    approval: ApprovalFields = field()


class Approvals(Operation):
    """Pending requests for approval, and approvals that are still valid."""

    all: Flag = field(False, help="Also those that are decided, expired or used up. Not with `follow`.")
    session: SessionName | None = field(None, help="Only those of this session.")
    follow: Flag = field(
        False, help="Stream each pending request, then each change. The client has to show them to an approver."
    )

    class Reply(Record):
        approvals: list[ApprovalFields] = field()

    traits = Traits(reads=True, route="GET /approvals", http_name="listApprovals", streams=True)


class RequestApproval(ApprovalOptions):
    """Ask the user whether an agent may do something that holdfast does not run itself. Returns when it is approved."""

    key: Text = field(longest=256, required_text=True, help="Identifies the action: a repeated request is the same.")
    command: Text = field(longest=1 << 16, required_text=True, help="What the agent wants to do, as the user sees it.")
    why: Text = field(longest=1024, required_text=True, help="Why the user is asked.")
    cwd: Text = field("", longest=4096, help="The directory in which it would be done.")

    Reply = ApprovalReply
    traits = Traits(waits=True, returns="approval")


class Approve(Operation):
    """Approve a request."""

    id: ApprovalRef = field(longest=64, required_text=True, help=_ID)
    scope: Literal["once", "session", "always"] = field(
        "once",
        help="`once`: for this request. `session`: for this command in this session. `always`: for this command.",
    )
    by: Text | None = field(None, longest=256, help="The name of the approver, for the audit log.")

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
    """Deny a pending request, or revoke an approval."""

    id: ApprovalRef = field(longest=64, required_text=True, help=_ID)
    by: Text | None = field(None, longest=256, help="The name of the approver, for the audit log.")

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
    """Report that a request is shown to an approver now: its caller then waits for the answer."""

    id: ApprovalRef = field(longest=64, required_text=True, help=_ID)

    traits = Traits(
        route="POST /approvals/{id}/shown", http_name="approvalShown", positional=("id",), names={"id": "approval"}
    )


class ApprovalPassword(Operation):
    """Answer a sudo request with the password. It is kept in memory only, for a short time."""

    id: ApprovalRef = field(longest=64, required_text=True, help=_ID)
    data: Base64 = field(longest=8192, required_text=True, help="The password.")
    by: Text | None = field(None, longest=256, help="The name of the user who typed it, for the audit log.")

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
    """Get the password for a sudo in a held process. For the askpass helper that sudo starts."""

    class Reply(Record):
        password: Base64 = field()

    traits = Traits(repeatable=False)


class Judge(Operation):
    """Say what the safety policy decides about a command, and why. Nothing runs, and no approval is requested."""

    command: Text = field(longest=1 << 20, required_text=True, help="The command text, for a shell.")
    cwd: Text | None = field(None, help="The directory in which it would run. Default: an unknown one.")
    profile: Literal["default", "strict", "sandbox"] | None = field(
        None,
        help="`strict`: ask about every unknown program; `sandbox`: run commands in a sandbox, and ask to leave it. "
        "Default: the profile of the policy.",
    )

    class Reply(Record):
        action: Literal["allow", "ask", "deny"] = field(help="The verdict.")
        rule: Text | None = field(help="The name of the rule that decided; null if none matched.")
        reason: Text = field(help="Why; empty if it is allowed.")
        part: Text = field(help="The part of the command that the rule matched.")
        word: Text = field(help="The word in this part that decided.")
        level: Literal["operator", "user", "default"] | None = field(help="Whose rule it is.")
        sandbox: Object | None = field(
            help="The sandbox in which it would run: writable (directories beside its own), network; null for none."
        )

    traits = Traits(
        reads=True, route="POST /judge", http_name="judgeCommand", positional=("command",), names={"command": "command"}
    )


class Audit(Operation):
    """Read the audit log: decisions, and actions on processes of other sessions."""

    after: Integer | None = field(None, help="Entries after this number. Default: the newest entries.")
    limit: Integer = field(100, least=1, most=1000, help="The most entries to return.")
    verify: Flag = field(False, help="Check the whole log: whether an entry was changed or is missing.")

    class Reply(Record):
        entries: list[Object] = field(help="Oldest first.")
        verified: VerifiedFields | None = field(None, help="With `verify`.")

    traits = Traits(reads=True, scope=Scope.OPERATOR, waits=True, route="GET /audit", http_name="readAudit")
