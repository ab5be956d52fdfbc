"""askpass: a sudo within a held command needs a password."""

from __future__ import annotations

import os
from base64 import b64encode
from contextlib import suppress

from holdfast.daemon.approvals import gate
from holdfast.daemon.approvals.judge import Judged
from holdfast.daemon.core.context import Call, Message, Room
from holdfast.errors import Denied, NoApprover, NoPassword, NotApproved
from holdfast.model.process import Process
from holdfast.model.vault import blank
from holdfast.ops.approvals import Askpass
from holdfast.ops.start import ApprovalOptions
from holdfast.places.base import Sudo

#: How long the user has to type it.
_TYPING_LIMIT = 45.0
_NEEDS = Judged("ask", "sudo", "sudo asks for a password")


async def handle(room: Room, call: Call, ask: Askpass) -> Message:
    """For a helper that sudo itself started, in a process that was started with `sudo`. Raises Denied, NoPassword."""
    sudo = await room.place.sudo_above(call.pid) if call.pid is not None else None
    process = _process(room, sudo)
    if sudo is None or process is None:
        raise Denied("only a sudo in a process of holdfast may ask for a password", next="call sudo")
    try:
        password, how = await _password(room, call, process, sudo)
    except NoPassword as refused:
        await _note(room, process, "sudo.refused", reason=(refused.data or {}).get("reason"))
        raise
    try:
        await _note(room, process, "sudo.answered", how=how)
        room.passwords.answered((sudo.pid, sudo.start))
        return {"password": b64encode(password).decode()}
    finally:
        blank(password)


async def _password(room: Room, call: Call, process: Process, sudo: Sudo) -> tuple[bytearray, str]:
    passwords, session = room.passwords, process.meta.session
    was_wrong = passwords.was_wrong((sudo.pid, sudo.start), session)
    if passwords.command:
        if was_wrong:
            what = "sudo does not take the password of sudo_password_command"
            raise NoPassword(what, next="mend it in config.toml", data={"reason": "wrong_password"})
        return await passwords.configured(await room.place.login.get()), "configured"
    if (remembered := passwords.remembered(session)) is not None:
        return remembered, "remembered"
    return await _asked(room, call, process, sudo), "person"


async def _asked(room: Room, call: Call, process: Process, sudo: Sudo) -> bytearray:
    """What the user types. Each time is a request of its own: no answer counts for another."""
    once = f"{process.id}@{os.urandom(6).hex()}"
    what = {"process": process.id, "command": sudo.command, "cwd": process.meta.cwd, "once": once}
    how = ApprovalOptions(approval_wait=_TYPING_LIMIT)
    want = gate.asked(room, how, "sudo", process.meta.session, what, once, process.meta.backend)
    try:
        approval = await gate.pass_gate(room, call, want, _NEEDS)
        assert approval is not None
        room.approvals.spend(approval)
        password = room.passwords.take(want.fingerprint)
    except NotApproved as refused:
        raise await _refused(room, refused) from None
    finally:
        room.passwords.drop(want.fingerprint)
    if password is None:
        raise NoPassword("what was typed is not there any more", data={"reason": "denied"})
    room.passwords.remember(process.meta.session, password)
    return password


async def _refused(room: Room, refused: NotApproved) -> NoPassword:
    data = refused.data or {}
    reason = str(data.get("reason"))
    request = data.get("approval")
    if isinstance(request, dict):
        with suppress(KeyError):
            await room.approvals.withdraw(request["id"])  # nothing waits for it any more
    if isinstance(refused, NoApprover):
        what = "nobody is there who could type the password"
        next = "holdfast approvals --follow, in a terminal; or set sudo_password_command in config.toml"
        return NoPassword(what, next=next, data={"reason": reason})
    said = {"denied": "a person refused to type the password", "timeout": f"nobody typed it within {_TYPING_LIMIT:g} s"}
    what = said.get(reason, "it was given up")
    next_step = "do without sudo, or ask them why" if reason == "denied" else None
    return NoPassword(what, next=next_step, data={"reason": reason})


def _process(room: Room, sudo: Sudo | None) -> Process | None:
    """The process that it runs in, if that was started with `sudo`."""
    if sudo is None:
        return None
    running = {process.pid: process for process in room.registry.running() if process.meta.sudo}
    return next((running[pid] for pid in sudo.ancestors if pid in running), None)


async def _note(room: Room, process: Process, what: str, **more: object) -> None:
    await room.audit.note(what, process=process.id, session=process.meta.session, **more)
