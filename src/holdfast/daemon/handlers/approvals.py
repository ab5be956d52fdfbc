"""approvals, approve, deny, approval_shown, approval_password: what a person is asked, and the answers."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import BadValue, Denied, NotNow
from holdfast.model.approvals import ApprovalRecord, identify
from holdfast.ops.approvals import ApprovalPassword, Approvals, ApprovalShown, Approve, Deny
from holdfast.wire import light_json

_LONGEST_PASSWORD = 4096


async def handle(context: DaemonContext, call: Call, ask: Approvals) -> Message:
    """The pending ones and those that stand; with `all`, those that are over, too.

    With `follow`, each of the pending ones and then each that changes, as lines of JSON: for as long as this lasts,
    whoever asks is a surface, which says `approval_shown` of what it shows to a person.
    """
    sees = _sees(context, call, ask.session)
    if ask.follow:
        _check_is_person(call)
        await _follow(context, call, sees)
    shown = [one for one in context.approvals.all() if sees(one.session) and (ask.all or _is_open(one))]
    return {"approvals": [one.to_json() for one in shown]}


async def approve(context: DaemonContext, call: Call, ask: Approve) -> Message:
    """On disk when it is answered. The same answer again is no error."""
    _check_is_person(call)
    approval = _named(context, call, ask.id)
    if call.is_strict and not approval.asker:
        raise Denied("who asked for it cannot approve it", next=f"a person does: holdfast approve {approval.id}")
    if approval.action == "sudo":
        raise BadValue(f"{approval.id} asks for a password", next="holdfast approvals --follow, in a terminal")
    return {"approval": (await context.approvals.decide(approval, "approved", ask.scope, _by(call, ask.by))).to_json()}


async def deny(context: DaemonContext, call: Call, ask: Deny) -> Message:
    """Also of one that was approved before: that is taken back, for what comes."""
    approval = _named(context, call, ask.id)
    return {"approval": (await context.approvals.decide(approval, "denied", None, _by(call, ask.by))).to_json()}


async def shown(context: DaemonContext, call: Call, ask: ApprovalShown) -> Message:
    """A person can see it now."""
    await context.approvals.shown(_named(context, call, ask.id))
    return {}


async def password(context: DaemonContext, call: Call, ask: ApprovalPassword) -> Message:
    """What a person types for sudo. It is in memory alone, and for a short while."""
    if call.is_strict:
        raise Denied("a password is typed by a person", next="holdfast approvals --follow, in a terminal of theirs")
    approval = _named(context, call, ask.id)
    if approval.action != "sudo":
        raise BadValue(f"{approval.id} asks for no password", next=f"holdfast approve {approval.id}")
    if not approval.is_pending:
        raise NotNow(f"{approval.id} is {approval.state}", next="holdfast approvals --all")
    if approval.id not in context.approvals.awaited:  # it was a daemon before this one that was asked
        raise NotNow(f"nobody waits for {approval.id} any more", next="call sudo again")
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


def _check_is_person(call: Call) -> None:
    if call.is_gated:
        raise Denied("a command that was judged cannot approve anything", next="a person does, in a terminal of theirs")


async def _follow(context: DaemonContext, call: Call, sees: Callable[[str], bool]) -> None:
    with context.approvals.surface(sees) as surface:
        await call.send("approvals", 0, b"")
        while True:
            approval = await surface.news.get()
            await call.send("approvals", 0, f"{light_json.dumps(approval.to_json())}\n".encode())


def _sees(context: DaemonContext, call: Call, named: str | None) -> Callable[[str], bool]:
    """Which sessions' requests are meant; by the names that they have then."""
    if named is None:
        return call.sees
    return lambda session: call.sees(session) and session == context.sessions.resolve(named)


def _named(context: DaemonContext, call: Call, named: str) -> ApprovalRecord:
    return identify(named, (one for one in context.approvals.all() if call.sees(one.session)))


def _by(call: Call, by: str | None) -> str:
    if by is not None and not (by and by.isprintable()):
        raise BadValue("by must be a printable text: who says so")
    return by or call.owner


def _is_open(approval: ApprovalRecord) -> bool:
    return approval.is_pending or approval.is_valid
