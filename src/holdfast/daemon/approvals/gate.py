"""Passing the gate: what is judged to need a person's approval waits for it here, or is refused with a reason."""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from typing import NamedTuple

from holdfast.daemon.approvals.judge import Judged
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import ApprovalRequired, CommandDenied, HoldfastError, NoApprover, Unreachable
from holdfast.model.approvals import PREFIX, Action, ApprovalRecord, fingerprint
from holdfast.ops.start import ApprovalOptions

#: A surface that was told of a request shows it within this time, or counts as not there.
_SHOWN_WITHIN = 3.0
_LONGEST_WAIT = 300.0


class Asked(NamedTuple):
    """What is to be done, and for whom."""

    action: Action
    process: str
    claimant: str
    """Whose approval it is once it has one: with the same claimant it is the same deed, asked for again."""
    session: str
    backend: str
    command: str
    cwd: str
    fingerprint: str
    asker: bool
    wait: float


def asked(
    context: DaemonContext,
    how: ApprovalOptions,
    action: Action,
    session: str,
    what: Message,
    claimant: str,
    backend: str,
) -> Asked:
    """`what` is what the approval is bound to, `command` and `cwd` among it; `how` says how to ask for it."""
    wait = how.approval_wait
    bound = {**what, "action": action, "backend": backend}
    return Asked(
        action,
        process=what["process"],
        claimant=claimant,
        session=session,
        backend=backend,
        command=_printable(what["command"]),
        cwd=_printable(what["cwd"]),
        fingerprint=fingerprint({key: value for key, value in bound.items() if action != "start" or key != "process"}),
        asker=how.asker,
        wait=min(_LONGEST_WAIT, context.settings.approval_wait if wait is None else wait),
    )


async def pass_gate(context: DaemonContext, call: Call, want: Asked, judged: Judged) -> ApprovalRecord | None:
    """Returns when it may be done: with the approval that was claimed for it, or without where none was needed.

    Raises CommandDenied, NoApprover, ApprovalRequired.
    """
    if judged.action == "allow":
        context.audit.note_soon("gate.allowed", **_told(want))
        return None
    if judged.action == "deny":
        await context.audit.note("gate.denied", **_told(want), rule=judged.rule, why=judged.why)
        raise denied("policy", judged.why, judged.rule)
    # Nothing is awaited between finding an answer and claiming it: a yes that another one took meanwhile is none.
    while (standing := _standing(context, want)) is None:
        await _asked_for(context, call, _by_its_name(context, want), judged)
    return await context.approvals.claim(standing, want.claimant)


def denied(reason: str, why: str, rule: str | None, approval: ApprovalRecord | None = None) -> CommandDenied:
    """Reasons: policy (a rule), denied (a person), timeout, withdrawn (the caller gave up)."""
    data = {"reason": reason, "rule": rule, "why": why, "approval": approval.to_json() if approval else None}
    said = {
        "policy": f"this command is not allowed: {why}",
        "denied": "a person said no to this command",
        "timeout": "nobody said yes to this command in time, which is a no",
        "withdrawn": "given up before anybody answered",
    }
    return CommandDenied(said[reason], data=data)


def _standing(context: DaemonContext, want: Asked) -> ApprovalRecord | None:
    want = _by_its_name(context, want)
    return context.approvals.standing(want.fingerprint, want.session, want.claimant)


def _by_its_name(context: DaemonContext, want: Asked) -> Asked:
    """Its session may get another name while a person thinks."""
    return want._replace(session=context.sessions.resolve(want.session))


async def _asked_for(context: DaemonContext, call: Call, want: Asked, judged: Judged) -> None:
    """Returns once a person has approved it. After a crash of ours, whoever showed it has to come back first."""
    approvals = context.approvals
    request = approvals.open_request(want.fingerprint, want.session, want.claimant)
    request_id = request.id if request is not None else f"{PREFIX}{os.urandom(6).hex()}"
    with approvals.waiting_for(request_id):
        if request is None:
            request = await approvals.request(partial(_request, want, judged, request_id))
        _check_can_be_asked(context, want, judged, request)
        await _answered(context, call, want, judged, request_id)


def _check_can_be_asked(context: DaemonContext, want: Asked, judged: Judged, request: ApprovalRecord) -> None:
    """Raises ApprovalRequired, NoApprover."""
    data = {"reason": "asked", "rule": judged.rule, "why": judged.why}
    if want.asker:
        what = f"this command needs a person's approval: {judged.why}"
        raise ApprovalRequired(what, data={**data, "approval": request.to_json()})
    was_shown = request.shown_at is not None and request.process == want.process
    if not was_shown and not context.approvals.has_surface(want.session):
        raise _no_approver(request, judged)


async def _answered(context: DaemonContext, call: Call, want: Asked, judged: Judged, request_id: str) -> None:
    approvals = context.approvals
    try:
        if not await _shown(context, call, request_id, want.session):
            raise _no_approver(approvals.get(request_id), judged)
        until = time.monotonic() + want.wait  # a clock that is set meanwhile is nobody's answer
        if approvals.get(request_id).is_pending:
            await approvals.wait_until(request_id, time.time() + want.wait)
        await _decision(context, call, want, judged, request_id, until)
    except asyncio.CancelledError:
        await _given_up(context, request_id)
        raise


async def _shown(context: DaemonContext, call: Call, request_id: str, session: str) -> bool:
    """Whether a person can see it now, or has answered. False when no surface says so in time."""
    until = time.monotonic() + _SHOWN_WITHIN
    with context.approvals.watching(request_id) as changed:
        while True:
            now = context.approvals.get(request_id)
            if call.given_up.is_set() or now.shown_at is not None or not now.is_pending:
                return True
            if not context.approvals.has_surface(session) or not await _news(call, changed, until - time.monotonic()):
                return False


async def _decision(
    context: DaemonContext, call: Call, want: Asked, judged: Judged, request_id: str, until: float
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
            if context.approvals.has_surface(want.session):
                gone_at = None
            else:
                gone_at = gone_at or time.monotonic()
                if time.monotonic() - gone_at >= _SHOWN_WITHIN:
                    raise _no_approver(now, judged)
            left = until - time.monotonic()
            if left <= 0:
                return _check_allowed(await context.approvals.expire(request_id, "timeout"), judged)
            back = left if gone_at is None else gone_at + _SHOWN_WITHIN - time.monotonic()
            await _news(call, changed, min(left, max(0.0, back)))


async def _news(call: Call, changed: asyncio.Event, patience: float) -> bool:
    """Until something changed or the caller gave up; False when neither happened in time."""
    if patience <= 0:
        return False
    waits = [asyncio.ensure_future(event.wait()) for event in (changed, call.given_up)]
    try:
        done, _ = await asyncio.wait(waits, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    changed.clear()
    return bool(done)


def _check_allowed(approval: ApprovalRecord, judged: Judged) -> None:
    """Raises CommandDenied unless that is what it came to."""
    if approval.state != "approved":
        reasons = {"denied": "denied", "withdrawn": "withdrawn"}
        raise denied(reasons.get(approval.state, "timeout"), judged.why, judged.rule, approval)


async def _given_up(context: DaemonContext, request_id: str) -> HoldfastError:
    """Withdraw the request, unless it is the daemon that goes: then whoever asks again finds it as it was."""
    if context.approvals.is_leaving:
        return Unreachable("the daemon is stopping", next="try again")
    await asyncio.shield(context.background.start(context.approvals.withdraw(request_id), "withdrawn"))
    now = context.approvals.get(request_id)
    return denied("withdrawn", now.why, now.rule, now)


def _no_approver(request: ApprovalRecord, judged: Judged) -> NoApprover:
    data = {"reason": "no_approver", "rule": judged.rule, "why": judged.why, "approval": request.to_json()}
    what = f"this command needs a person's approval and nobody is there to give it: {judged.why}"
    return NoApprover(what, next=f"holdfast approve {request.id}, then call again", data=data)


def _request(want: Asked, judged: Judged, id_: str, at: float, expires_at: float) -> ApprovalRecord:
    return ApprovalRecord(
        id_,
        at,
        want.session,
        want.backend,
        want.action,
        want.process,
        want.command,
        want.cwd,
        want.fingerprint,
        judged.rule,
        judged.why,
        want.asker,
        expires_at=expires_at,
    )


def _told(want: Asked) -> Message:
    names = ("action", "process", "session", "backend", "command", "cwd")
    return {name: getattr(want, name) for name in names}


def _printable(text: str) -> str:
    """Bytes that are no UTF-8 cannot be kept: they are shown as escapes."""
    return text.encode(errors="backslashreplace").decode()
