"""Dependencies (`depends_on`): read from the file, and checked against the members that they name."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.project import values
from holdfast.project.source import Source
from holdfast.project.spec import NEED_KINDS, READY_KEYS, Member, Need
from holdfast.project.values import InvalidValue

_FORMS = '["name"], { name = "started" | "ready" | "completed" } or { name = { log = "RE" } }'
#: A name in a list. `resolve` replaces it: ready where that member has a readiness rule, else started.
_DEFAULT = Need("started", pattern="default")


def read(file: Source, keys: tuple[str, ...], value: object) -> dict[str, Need]:
    """Dependencies by the name of the member. Raises BadValue."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return dict.fromkeys(value, _DEFAULT)
    if not isinstance(value, dict):
        raise file.error(keys, "must be a list of names or a table", f"write it as {_FORMS}")
    return {name: _need(file, (*keys, name), entry) for name, entry in value.items()}


def resolve(file: Source, members: Mapping[str, Member]) -> dict[str, Member]:
    """The members with every dependency checked. Members that others wait to complete become one-shots."""
    awaited = {name for m in members.values() for name, need in m.needs.items() if need.kind == "completed"}
    return {
        name: member._replace(
            needs={other: _resolved(file, members, name, other, need) for other, need in member.needs.items()},
            oneshot=member.oneshot or name in awaited,
        )
        for name, member in members.items()
    }


def _need(file: Source, keys: tuple[str, ...], entry: object) -> Need:
    if isinstance(entry, dict):
        try:
            return _log(entry)
        except InvalidValue as invalid:
            raise file.error(keys, invalid.why, invalid.next) from None
    for kind in NEED_KINDS:
        if entry == kind != "log":
            return Need(kind)
    raise file.error(keys, f"cannot be {entry!r:.60}", 'one of: "started", "ready", "completed", { log = "RE" }')


def _log(entry: Mapping[str, object]) -> Need:
    if "log" not in entry or entry.keys() - {"log", "timeout"}:
        raise InvalidValue("has unknown keys", 'write it as { log = "RE" }, with a timeout where it needs one')
    timeout = values.seconds(entry["timeout"]) if "timeout" in entry else None
    return Need("log", values.pattern(entry["log"]), timeout)


def _resolved(file: Source, members: Mapping[str, Member], name: str, other: str, need: Need) -> Need:
    keys = ("processes", name, "depends_on")
    if other not in members:
        hint = values.similar(other, list(members))
        raise file.error(keys, f"names {other[:80]!r}, which is not there{hint}", f"add [processes.{other[:80]}]")
    has_rule = members[other].has_ready_rule
    if need is _DEFAULT:
        return Need("ready" if has_rule else "started")
    if need.kind == "ready" and not has_rule:
        raise file.error(
            keys,
            f"waits for {other} to be ready, but {other} has no readiness rule",
            f"give {other} one of {', '.join(READY_KEYS)}",
        )
    return need
