"""approvals, request_approval, approve, deny, approval_shown, approval_password, judge, audit: requests, decisions."""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Callable
from glob import escape, glob

from holdfast import light_json
from holdfast.daemon.approvals import gate
from holdfast.daemon.approvals.commands import Judged
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import BadValue, Denied, NotNow
from holdfast.model.approvals import ApprovalRecord, identify
from holdfast.ops.approvals import (
    ApprovalPassword,
    Approvals,
    ApprovalShown,
    Approve,
    Audit,
    Deny,
    Judge,
    RequestApproval,
)
from holdfast.records import asdict, replace
from holdfast.store import audit as audit_rows

_LONGEST_PASSWORD = 4096


async def handle(context: DaemonContext, call: Call, ask: Approvals) -> Message:
    """Pending requests and standing approvals; with `all`, also those that are over.

    With `follow`, it streams each pending request and then each that changes, as lines of JSON. While it lasts, the
    client counts as an approval surface: it calls `approval_shown` for each request that it shows to an approver.
    """
    sees = _sees(context, call, ask.session)
    if ask.follow:
        _check_may_approve(call)
        await _follow(context, call, sees)
    shown = [one for one in context.approvals.all() if sees(one.session) and (ask.all or _is_open(one))]
    return {"approvals": [one.to_json() for one in shown]}


async def request(context: DaemonContext, call: Call, ask: RequestApproval) -> Message:
    """The approval, once there is one. Raises NotApproved."""
    what = {"process": ask.key, "command": ask.command, "cwd": ask.cwd}
    asked = gate.gated_action(context, ask, "tool", call.owner, what, ask.key, "local")
    approval = await gate.pass_gate(context, call, asked, Judged("ask", None, ask.why))
    assert approval is not None
    context.approvals.spend(approval)
    return {"approval": approval.to_json()}


async def approve(context: DaemonContext, call: Call, ask: Approve) -> Message:
    """On disk with the reply. The same decision again is no error."""
    _check_may_approve(call)
    approval = _named(context, call, ask.id)
    if call.is_strict and not approval.asker:
        raise Denied("a session cannot approve its own request", next=f"the user does: holdfast approve {approval.id}")
    if approval.action == "sudo":
        raise BadValue(f"{approval.id} asks for a password", next="holdfast approvals --follow, in a terminal")
    return {"approval": (await context.approvals.decide(approval, "approved", ask.scope, _by(call, ask.by))).to_json()}


async def deny(context: DaemonContext, call: Call, ask: Deny) -> Message:
    """On disk with the reply. It also revokes an approval that was given before."""
    approval = _named(context, call, ask.id)
    return {"approval": (await context.approvals.decide(approval, "denied", None, _by(call, ask.by))).to_json()}


async def shown(context: DaemonContext, call: Call, ask: ApprovalShown) -> Message:
    """On disk with the reply: an approver can see the request now."""
    await context.approvals.shown(_named(context, call, ask.id))
    return {}


async def judge(context: DaemonContext, call: Call, ask: Judge) -> Message:
    """By the policy of this instance. Raises BadValue if a policy file is invalid."""
    return await context.gate.explained(ask.command, ask.cwd, ask.profile)


async def password(context: DaemonContext, call: Call, ask: ApprovalPassword) -> Message:
    """Approves a sudo with the password that the user typed. The password is in memory alone, for a short time."""
    if call.is_strict:
        raise Denied("only the user may type a password", next="the user runs: holdfast approvals --follow")
    approval = _named(context, call, ask.id)
    if approval.action != "sudo":
        raise BadValue(f"{approval.id} asks for no password", next=f"holdfast approve {approval.id}")
    if not approval.is_pending:
        raise NotNow(f"{approval.id} is {approval.state}", next="holdfast approvals --all")
    if approval.id not in context.approvals.awaited:  # the sudo asked an earlier daemon
        raise NotNow(f"no sudo waits for {approval.id} any more", next="call sudo again")
    context.passwords.type(approval.fingerprint, _password(ask.data))
    try:
        decided = await context.approvals.decide(approval, "approved", "once", _by(call, ask.by))
    except BaseException:
        context.passwords.drop(approval.fingerprint)
        raise
    return {"approval": decided.to_json()}


def _password(encoded: str) -> bytearray:
    try:
        data = bytearray(b64decode(encoded, validate=True))
    except (binascii.Error, ValueError):
        raise BadValue("data is not base64") from None
    if not data or len(data) > _LONGEST_PASSWORD or b"\n" in data or b"\0" in data:
        raise BadValue("a password is one line, and not empty")
    return data


def _check_may_approve(call: Call) -> None:
    if call.is_bound:
        raise Denied("a held command cannot approve anything", next="the user does, in a terminal")


async def _follow(context: DaemonContext, call: Call, sees: Callable[[str], bool]) -> None:
    with context.approvals.surface(sees) as surface:
        await call.send("approvals", 0, b"")
        while True:
            approval = await surface.changes.get()
            await call.send("approvals", 0, f"{light_json.dumps(approval.to_json())}\n".encode())


def _sees(context: DaemonContext, call: Call, named: str | None) -> Callable[[str], bool]:
    """Whether the requests of a session are meant, by its current name."""
    if named is None:
        return call.sees
    return lambda session: call.sees(session) and session == context.sessions.resolve(named)


def _named(context: DaemonContext, call: Call, named: str) -> ApprovalRecord:
    return identify(named, (one for one in context.approvals.all() if call.sees(one.session)))


def _by(call: Call, by: str | None) -> str:
    if by is not None and not (by and by.isprintable()):
        raise BadValue("by must be a printable text: who decided")
    return by or call.by


def _is_open(approval: ApprovalRecord) -> bool:
    return approval.is_pending or approval.is_valid


async def audit(context: DaemonContext, call: Call, ask: Audit) -> Message:
    """The newest entries, or those behind `after`, oldest first. With `verify`, all hashes are checked."""
    after, limit = ask.after, ask.limit
    await context.store.flush()
    if after is None:
        entries = await context.store.read(lambda db: audit_rows.last(db, limit))
    else:
        entries = await context.store.read(lambda db: audit_rows.read(db, after, limit))
    answer: Message = {"entries": [_entry(entry) for entry in entries]}
    if ask.verify:
        verified = await context.store.read(audit_rows.verify)
        aside = await asyncio.to_thread(lambda: sorted(glob(f"{escape(context.paths.store)}.corrupt-*")))
        if verified.fault is None and aside:  # a crash may have prevented the entry that says so
            verified = replace(verified, fault=audit_rows.set_aside_fault(aside[0]), seq=1)
        answer["verified"] = asdict(verified)
    return answer


def _entry(entry: audit_rows.Entry) -> Message:
    try:
        fields = light_json.loads(entry.text)
    except ValueError:
        fields = None
    shown = fields if isinstance(fields, dict) else {"what": "unreadable"}
    return {**shown, "seq": entry.seq, "at": entry.at, "hash": entry.hash}
