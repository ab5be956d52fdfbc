"""What a process needs of others (`depends_on`): read from the file, and checked against those others."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.project import values
from holdfast.project.source import Source
from holdfast.project.spec import KINDS, READY_KEYS, Member, Need
from holdfast.project.values import Wrong

_FORMS = '["name"], { name = "started" | "ready" | "completed" } or { name = { log = "RE" } }'
#: Stands for what a list of names means; `resolve` says what that is.
_USUAL = Need("started", pattern="usual")


def read(file: Source, keys: tuple[str, ...], value: object) -> dict[str, Need]:
    """By name. In a list they are what is usual: ready where it has a rule for that, else started."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return dict.fromkeys(value, _USUAL)
    if not isinstance(value, dict):
        raise file.error(keys, "must be a list of names or a table", f"write it as {_FORMS}")
    return {name: _need(file, (*keys, name), entry) for name, entry in value.items()}


def resolve(file: Source, members: Mapping[str, Member]) -> dict[str, Member]:
    """With every need checked against the process that it is of."""
    waited_for = {name for m in members.values() for name, need in m.needs.items() if need.kind == "completed"}
    return {
        name: member._replace(
            needs={other: _resolved(file, members, name, other, need) for other, need in member.needs.items()},
            oneshot=member.oneshot or name in waited_for,
        )
        for name, member in members.items()
    }


def _need(file: Source, keys: tuple[str, ...], entry: object) -> Need:
    if isinstance(entry, dict):
        try:
            return _log(entry)
        except Wrong as wrong:
            raise file.error(keys, wrong.why, wrong.next) from None
    for kind in KINDS:
        if entry == kind != "log":
            return Need(kind)
    raise file.error(keys, f"cannot be {entry!r:.60}", 'one of: "started", "ready", "completed", { log = "RE" }')


def _log(entry: Mapping[str, object]) -> Need:
    if "log" not in entry or entry.keys() - {"log", "timeout"}:
        raise Wrong("has keys that are not known here", 'write it as { log = "RE" }, with a timeout where it needs one')
    timeout = values.seconds(entry["timeout"]) if "timeout" in entry else None
    return Need("log", values.pattern(entry["log"]), timeout)


def _resolved(file: Source, members: Mapping[str, Member], name: str, other: str, need: Need) -> Need:
    keys = ("processes", name, "depends_on")
    if other not in members:
        hint = values.similar(other, list(members))
        raise file.error(keys, f"names {other[:80]!r}, which is not there{hint}", f"add [processes.{other[:80]}]")
    has_rule = members[other].has_ready_rule
    if need is _USUAL:
        return Need("ready" if has_rule else "started")
    if need.kind == "ready" and not has_rule:
        raise file.error(
            keys,
            f"waits for {other} to be ready, but nothing tells when",
            f"give {other} one of {', '.join(READY_KEYS)}",
        )
    return need
