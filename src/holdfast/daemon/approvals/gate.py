"""The gate: a command that needs an approval waits for the decision here, or is refused with a reason."""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from typing import TYPE_CHECKING

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.tasks import first_of
from holdfast.errors import ApprovalRequired, CommandDenied, HoldfastError, NoApprover, Unreachable
from holdfast.model.approvals import PREFIX, Action, ApprovalRecord, fingerprint
from holdfast.ops.start import ApprovalOptions
from holdfast.records import Struct, replace
from holdfast.settings import LONGEST_APPROVAL_WAIT

if TYPE_CHECKING:
    from holdfast.daemon.approvals.commands import Judged

#: A surface shows a request within this time, or counts as not connected.
_SHOW_TIMEOUT = 3.0


class GatedAction(Struct, frozen=True):
    """An action that may need an approval."""

    action: Action
    process: str
    claimant: str
    """Identifies the action: a repeated request for the same action has the same claimant."""
    session: str
    backend: str
    command: str
    cwd: str
    fingerprint: str
    asker: bool
    wait: float


def gated_action(
    context: DaemonContext,
    how: ApprovalOptions,
    action: Action,
    session: str,
    what: Message,
    claimant: str,
    backend: str,
) -> GatedAction:
    """`what` holds all that the approval is bound to, with `command` and `cwd`; `how` says how to ask for it."""
    wait = how.approval_wait
    bound = {**what, "action": action, "backend": backend}
    is_new = action in ("start", "tool")  # its id is another one each time
    return GatedAction(
        action,
        process=what["process"],
        claimant=claimant,
        session=session,
        backend=backend,
        command=_printable(what["command"]),
        cwd=_printable(what["cwd"]),
        fingerprint=fingerprint({key: value for key, value in bound.items() if not is_new or key != "process"}),
        asker=how.asker,
        wait=min(LONGEST_APPROVAL_WAIT, context.settings.approval_wait if wait is None else wait),
    )


async def pass_gate(context: DaemonContext, call: Call, gated: GatedAction, judged: Judged) -> ApprovalRecord | None:
    """Returns when the action is allowed: the approval that was claimed for it, or None where none was needed.

    Raises CommandDenied, NoApprover, ApprovalRequired.
    """
    if judged.action == "allow":
        context.audit.note_soon("gate.allowed", **_audit_fields(gated))
        return None
    if judged.action == "deny":
        await context.audit.note("gate.denied", **_audit_fields(gated), rule=judged.rule, why=judged.why)
        raise denied("policy", judged.why, judged.rule)
    # No await between finding an approval and claiming it: another task could claim it first.
    while (standing := _standing(context, gated)) is None:
        await _request_approval(context, call, _with_current_name(context, gated), judged)
    return await context.approvals.claim(standing, gated.claimant)


def denied(reason: str, why: str, rule: str | None, approval: ApprovalRecord | None = None) -> CommandDenied:
    """Reasons: policy (a rule), denied (by an approver), timeout, withdrawn (the caller gave up)."""
    data = {"reason": reason, "rule": rule, "why": why, "approval": approval.to_json() if approval else None}
    texts = {
        "policy": f"this command is not allowed: {why}",
        "denied": "the user denied this command",
        "timeout": "this command was not approved in time, so it is denied",
        "withdrawn": "given up before it was decided",
    }
    return CommandDenied(texts[reason], data=data)


def _standing(context: DaemonContext, gated: GatedAction) -> ApprovalRecord | None:
    gated = _with_current_name(context, gated)
    return context.approvals.standing(gated.fingerprint, gated.session, gated.claimant)


def _with_current_name(context: DaemonContext, gated: GatedAction) -> GatedAction:
    """The session may be renamed while the request waits."""
    return replace(gated, session=context.sessions.resolve(gated.session))


async def _request_approval(context: DaemonContext, call: Call, gated: GatedAction, judged: Judged) -> None:
    """Returns when it is approved. After a crash of the daemon, a surface has to connect again first."""
    approvals = context.approvals
    request = approvals.open_request(gated.fingerprint, gated.session, gated.claimant)
    request_id = request.id if request is not None else f"{PREFIX}{os.urandom(6).hex()}"
    with approvals.waiting_for(request_id):
        if request is None:
            request = await approvals.request(partial(_request, gated, judged, request_id))
        _check_has_approver(context, gated, judged, request)
        await _answered(context, call, gated, judged, request_id)


def _check_has_approver(context: DaemonContext, gated: GatedAction, judged: Judged, request: ApprovalRecord) -> None:
    """Raises ApprovalRequired, NoApprover."""
    data = {"reason": "asked", "rule": judged.rule, "why": judged.why}
    if gated.asker:
        what = f"this command needs an approval: {judged.why}"
        raise ApprovalRequired(what, data={**data, "approval": request.to_json()})
    was_shown = request.shown_at is not None and request.process == gated.process
    if not was_shown and not context.approvals.has_surface(gated.session):
        raise _no_approver(request, judged)


async def _answered(context: DaemonContext, call: Call, gated: GatedAction, judged: Judged, request_id: str) -> None:
    approvals = context.approvals
    try:
        if not await _shown(context, call, request_id, gated.session):
            raise _no_approver(approvals.get(request_id), judged)
        until = time.monotonic() + gated.wait  # the wall clock may be set meanwhile
        if approvals.get(request_id).is_pending:
            await approvals.wait_until(request_id, time.time() + gated.wait)
        await _decision(context, call, gated, judged, request_id, until)
    except asyncio.CancelledError:
        await _given_up(context, request_id)
        raise


async def _shown(context: DaemonContext, call: Call, request_id: str, session: str) -> bool:
    """Whether an approver can see it now, or has decided. False when no surface says so in time."""
    until = time.monotonic() + _SHOW_TIMEOUT
    with context.approvals.watching(request_id) as changed:
        while True:
            now = context.approvals.get(request_id)
            if call.given_up.is_set() or now.shown_at is not None or not now.is_pending:
                return True
            left = until - time.monotonic()
            if not context.approvals.has_surface(session) or not await _wait_for_change(call, changed, left):
                return False


async def _decision(
    context: DaemonContext, call: Call, gated: GatedAction, judged: Judged, request_id: str, until: float
) -> None:
    """Returns when it is approved, `until` being a time of the monotonic clock."""
    gone_at: float | None = None
    with context.approvals.watching(request_id) as changed:
        while True:
            now = context.approvals.get(request_id)
            if call.given_up.is_set():
                raise await _given_up(context, request_id)
            if not now.is_pending:
                return _check_allowed(now, judged)
            if context.approvals.has_surface(gated.session):
                gone_at = None
            else:
                gone_at = gone_at or time.monotonic()
                if time.monotonic() - gone_at >= _SHOW_TIMEOUT:
                    raise _no_approver(now, judged)
            left = until - time.monotonic()
            if left <= 0:
                return _check_allowed(await context.approvals.expire(request_id, "timeout"), judged)
            back = left if gone_at is None else gone_at + _SHOW_TIMEOUT - time.monotonic()
            await _wait_for_change(call, changed, min(left, max(0.0, back)))


async def _wait_for_change(call: Call, changed: asyncio.Event, timeout: float) -> bool:
    """Until the request changed or the caller gave up; False when neither happened in time."""
    done = timeout > 0 and await first_of(changed.wait(), call.given_up.wait(), timeout=timeout)
    changed.clear()
    return bool(done)


def _check_allowed(approval: ApprovalRecord, judged: Judged) -> None:
    """Raises CommandDenied unless it is approved."""
    if approval.state != "approved":
        reasons = {"denied": "denied", "withdrawn": "withdrawn"}
        raise denied(reasons.get(approval.state, "timeout"), judged.why, judged.rule, approval)


async def _given_up(context: DaemonContext, request_id: str) -> HoldfastError:
    """Withdraw the request, unless the daemon stops: then it stays as it is for the caller that asks again."""
    if context.approvals.is_leaving:
        return Unreachable("the daemon is stopping", next="try again")
    await asyncio.shield(context.background.start(context.approvals.withdraw(request_id), "withdrawn"))
    now = context.approvals.get(request_id)
    return denied("withdrawn", now.why, now.rule, now)


def _no_approver(request: ApprovalRecord, judged: Judged) -> NoApprover:
    data = {"reason": "no_approver", "rule": judged.rule, "why": judged.why, "approval": request.to_json()}
    what = f"this command needs an approval and no approver is connected: {judged.why}"
    return NoApprover(what, next=f"holdfast approve {request.id}, then call again", data=data)


def _request(gated: GatedAction, judged: Judged, id_: str, at: float, expires_at: float) -> ApprovalRecord:
    bound: Message = {"fingerprint": gated.fingerprint, "asker": gated.asker, "rule": judged.rule, "why": judged.why}
    return ApprovalRecord(id_, at, **_audit_fields(gated), **bound, expires_at=expires_at)


def _audit_fields(gated: GatedAction) -> Message:
    names = ("action", "process", "session", "backend", "command", "cwd")
    return {name: getattr(gated, name) for name in names}


def _printable(text: str) -> str:
    """Bytes that are not UTF-8 cannot be stored: they become escapes."""
    return text.encode(errors="backslashreplace").decode()
