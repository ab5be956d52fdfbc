"""Approval requests: their states, and when an answer covers a request. No I/O; time is an argument."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from holdfast.errors import Ambiguous, NotFound, NotNow
from holdfast.model.events import Notice
from holdfast.model.process import ProcessId
from holdfast.records import Struct, asdict, replace

Action: TypeAlias = Literal["start", "restart", "send", "sudo", "tool"]
State: TypeAlias = Literal["pending", "approved", "denied", "expired", "withdrawn"]
Scope: TypeAlias = Literal["once", "session", "always"]

PREFIX = "appr_"
SCOPES: tuple[Scope, ...] = ("once", "session", "always")
#: The shortest prefix of an id that is accepted.
_SHORTEST = len(PREFIX) + 4
#: Stored, but not shown to clients.
_INNER = frozenset({"fingerprint", "used_by", "spent_at"})


class ApprovalRecord(Struct, frozen=True):
    """A request, and its answer once there is one."""

    id: str
    at: float
    session: str
    backend: str
    action: Action
    process: str
    """The process to start, or to send input to; of `tool`, the call of the agent."""
    command: str
    cwd: str
    fingerprint: str
    rule: str | None
    why: str
    asker: bool = False
    """The client that made the request asks the approver itself, and may deliver the answer."""
    state: State = "pending"
    scope: Scope | None = None
    decided_by: str | None = None
    decided_at: float | None = None
    reason: str | None = None
    """Why it is not pending any more: approved, denied, timeout, unused, withdrawn, session_end."""
    expires_at: float | None = None
    shown_at: float | None = None
    used_at: float | None = None
    used_by: str | None = None
    spent_at: float | None = None

    @property
    def is_pending(self) -> bool:
        return self.state == "pending"

    @property
    def is_valid(self) -> bool:
        """Whether it can still approve an action."""
        return self.state == "approved" and self.spent_at is None

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name not in _INNER}


def notice_of(approval: ApprovalRecord) -> Notice:
    """The request as a notice, for sinks."""
    names = ("command", "cwd", "backend", "rule", "why", "action", "expires_at")
    data = {"approval": approval.id, **{name: getattr(approval, name) for name in names}}
    process = None if approval.action in ("start", "tool") else ProcessId(approval.process)
    return Notice(f"{approval.id}:approval", "approval", process, approval.session, approval.at, None, data)


def fingerprint(request: dict[str, Any]) -> str:
    """A hash of the request: equal only for equal requests."""
    encoded = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(encoded.encode()).hexdigest()


def covers(approval: ApprovalRecord, fingerprint: str, session: str, claimant: str, now: float) -> bool:
    """Whether this answer approves the request with this fingerprint for the claimant."""
    if not approval.is_valid or approval.fingerprint != fingerprint or is_due(approval, now):
        return False
    if approval.scope == "always":
        return True
    if approval.session != session:
        return False
    return approval.scope == "session" or approval.used_by in (None, claimant)


def claimed(approval: ApprovalRecord, claimant: str, now: float, keep: float) -> ApprovalRecord:
    """The record when it is about to be used: a `once` answer belongs to this claimant from now on.

    It expires after `keep` seconds, for the case that its use is never recorded.
    """
    if approval.scope == "once":
        return replace(approval, used_at=now, used_by=claimant, expires_at=now + keep)
    return replace(approval, used_at=now)


def released(approval: ApprovalRecord) -> ApprovalRecord:
    """The record when a claimed answer was not used."""
    return replace(approval, used_at=None, used_by=None) if approval.scope == "once" else approval


def spent(approval: ApprovalRecord, now: float) -> ApprovalRecord:
    return replace(approval, spent_at=now) if approval.scope == "once" else approval


def decided(
    approval: ApprovalRecord, state: State, scope: Scope | None, by: str, now: float, keep: float
) -> ApprovalRecord:
    """The record with the answer. A pending request takes any; a valid approval can be denied, which revokes it.

    The same answer again changes nothing. Raises NotNow for an answer that comes too late.
    """
    if approval.state == state and approval.scope == scope:
        return approval
    if not approval.is_pending and not (state == "denied" and approval.is_valid):
        raise NotNow(f"{approval.id} is {_state_text(approval)}", next="holdfast approvals --all")
    expires_at = now + keep if scope == "once" else None
    return replace(
        approval, state=state, scope=scope, decided_by=by, decided_at=now, reason=state, expires_at=expires_at
    )


def over(approval: ApprovalRecord, state: State, reason: str, now: float) -> ApprovalRecord:
    """The record closed without an answer, or with its answer no longer valid."""
    return replace(approval, state=state, reason=reason, decided_at=approval.decided_at or now, expires_at=None)


def due_at(approval: ApprovalRecord) -> float | None:
    """When it expires; None when it is closed already or does not expire."""
    return approval.expires_at if approval.is_pending or approval.is_valid else None


def is_due(approval: ApprovalRecord, now: float) -> bool:
    """Whether it has expired."""
    due = due_at(approval)
    return due is not None and due <= now


def identify(text: str, approvals: Iterable[ApprovalRecord]) -> ApprovalRecord:
    """The request with this id, or with an id that begins so. Raises NotFound, Ambiguous."""
    fitting = [one for one in approvals if one.id == text or (len(text) >= _SHORTEST and one.id.startswith(text))]
    if not fitting:
        raise NotFound(f"no approval {text[:80]}", next="holdfast approvals")
    if len(fitting) > 1:
        raise Ambiguous(f"{text} matches {len(fitting)} approvals", next="holdfast approvals")
    return fitting[0]


def _state_text(approval: ApprovalRecord) -> str:
    return "used" if approval.state == "approved" and approval.used_by is not None else approval.state
