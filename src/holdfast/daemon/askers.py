"""Connections whose callers ask a person themselves: a request is withdrawn when none of its askers is left."""

from __future__ import annotations

from holdfast.daemon.room import Call, Room
from holdfast.errors import ApprovalRequired


def told_to_ask(room: Room, asker: object, call: Call, required: ApprovalRequired) -> None:
    """The caller is about to learn what to ask; `asker` is its connection. One that has given up will not ask."""
    approval = (required.data or {})["approval"]
    if not approval["asker"]:
        return  # it was there before, and is not for whoever joins it to take back
    _forget_answered(room)
    room.approvals.askers.setdefault(approval["id"], set()).add(asker)
    if call.given_up.is_set():
        _leave(room, asker, approval["id"])


def gone(room: Room, asker: object) -> None:
    """The connection is over. Where it is the daemon that goes, its requests wait for whoever comes back."""
    if not room.approvals.is_leaving:
        for approval_id in [one for one, askers in room.approvals.askers.items() if asker in askers]:
            _leave(room, asker, approval_id)


def _leave(room: Room, asker: object, approval_id: str) -> None:
    approvals = room.approvals
    left = approvals.askers[approval_id]
    left.discard(asker)
    if left:
        return
    del approvals.askers[approval_id]
    if approval_id in _pending(room) and approval_id not in approvals.awaited:
        room.chores.start(approvals.withdraw(approval_id), "withdrawn")


def _forget_answered(room: Room) -> None:
    for approval_id in room.approvals.askers.keys() - _pending(room):
        del room.approvals.askers[approval_id]


def _pending(room: Room) -> set[str]:
    return {one.id for one in room.approvals.pending()}
