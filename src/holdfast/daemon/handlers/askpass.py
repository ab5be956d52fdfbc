"""askpass: a sudo in a command asks for the password."""

from __future__ import annotations

import os
from base64 import b64encode
from contextlib import suppress

from holdfast.daemon.approvals import gate
from holdfast.daemon.approvals.commands import Judged
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import Denied, NoApprover, NoPassword, NotApproved
from holdfast.model.password_cache import overwrite
from holdfast.model.process import HeldProcess
from holdfast.ops.approvals import Askpass
from holdfast.ops.start import ApprovalOptions
from holdfast.places.base import Sudo

#: How long the user has to type it.
_TYPING_LIMIT = 45.0
_NEEDS = Judged("ask", "sudo", "sudo asks for a password")


async def handle(context: DaemonContext, call: Call, ask: Askpass) -> Message:
    """The password, for a helper that sudo started in a process that may use it. Raises Denied, NoPassword."""
    sudo = await context.place.sudo_above(call.pid) if call.pid is not None else None
    process = _process(context, sudo)
    if sudo is None or process is None:
        raise Denied("only a sudo in a process of holdfast may ask for a password", next="call sudo")
    try:
        password, how = await _password(context, call, process, sudo)
    except NoPassword as refused:
        await _note(context, process, "sudo.refused", reason=(refused.data or {}).get("reason"))
        raise
    try:
        await _note(context, process, "sudo.answered", how=how)
        context.passwords.answered((sudo.pid, sudo.start))
        return {"password": b64encode(password).decode()}
    finally:
        overwrite(password)


async def _password(context: DaemonContext, call: Call, process: HeldProcess, sudo: Sudo) -> tuple[bytearray, str]:
    passwords, session = context.passwords, process.meta.session
    was_wrong = passwords.was_wrong((sudo.pid, sudo.start), session)
    if passwords.command:
        if was_wrong:
            what = "sudo does not take the password of sudo_password_command"
            raise NoPassword(what, next="correct it in config.toml", data={"reason": "wrong_password"})
        return await passwords.configured(await context.place.login.get()), "configured"
    if (remembered := passwords.remembered(session)) is not None:
        return remembered, "remembered"
    return await _asked(context, call, process, sudo), "person"


async def _asked(context: DaemonContext, call: Call, process: HeldProcess, sudo: Sudo) -> bytearray:
    """The password that the user types. Each sudo is a request of its own."""
    once = f"{process.id}@{os.urandom(6).hex()}"
    what = {"process": process.id, "command": sudo.command, "cwd": process.meta.cwd, "once": once}
    how = ApprovalOptions(approval_wait=_TYPING_LIMIT)
    request = gate.gated_action(context, how, "sudo", process.meta.session, what, once, process.meta.backend)
    try:
        approval = await gate.pass_gate(context, call, request, _NEEDS)
        assert approval is not None
        context.approvals.spend(approval)
        password = context.passwords.take(request.fingerprint)
    except NotApproved as refused:
        raise await _refused(context, refused) from None
    finally:
        context.passwords.drop(request.fingerprint)
    if password is None:
        raise NoPassword("the typed password is not in memory any more", data={"reason": "denied"})
    context.passwords.remember(process.meta.session, password)
    return password


async def _refused(context: DaemonContext, refused: NotApproved) -> NoPassword:
    data = refused.data or {}
    reason = str(data.get("reason"))
    approval = data.get("approval")
    if isinstance(approval, dict):
        with suppress(KeyError):
            await context.approvals.withdraw(approval["id"])  # nothing waits for it any more
    if isinstance(refused, NoApprover):
        what = "no approver is connected to type the password"
        next = "holdfast approvals --follow, in a terminal; or set sudo_password_command in config.toml"
        return NoPassword(what, next=next, data={"reason": reason})
    texts = {"denied": "the user refused to type the password", "timeout": f"not typed within {_TYPING_LIMIT:g} s"}
    what = texts.get(reason, "it was given up")
    next_step = "do without sudo, or ask the user why" if reason == "denied" else None
    return NoPassword(what, next=next_step, data={"reason": reason})


def _process(context: DaemonContext, sudo: Sudo | None) -> HeldProcess | None:
    """The process that the sudo runs in, if that was started with the helper."""
    if sudo is None:
        return None
    running = {process.pid: process for process in context.registry.active() if process.meta.sudo}
    return next((running[pid] for pid in sudo.ancestors if pid in running), None)


async def _note(context: DaemonContext, process: HeldProcess, what: str, **more: object) -> None:
    await context.audit.note(what, process=process.id, session=process.meta.session, **more)
