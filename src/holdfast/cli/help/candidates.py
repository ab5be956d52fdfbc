"""Candidates for completion: ids, names, sessions, tasks, queues, signals, variables. Never starts a daemon."""

from __future__ import annotations

import os

from holdfast.client import launch
from holdfast.client.link import greet
from holdfast.client.process import Process, outcome
from holdfast.paths import find_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from holdfast.cli.options import Option
    from holdfast.wire.frames import Message

    Found: TypeAlias = list[tuple[str, str]] | str

#: Verbs for running processes only, and for ended processes only.
_OF_RUNNING = frozenset({"kill", "send", "attach", "resize", "screen"})
_OF_ENDED = frozenset({"rm"})
_SESSIONS = frozenset({"S", "SESSION", "OLD"})
_LIMIT = 1.5


def of_slot(slot: str, verb: str, current: str = "") -> Found:
    """Candidates with a description each; or `files` or `directories`, for the shell to find."""
    if slot == "ID":
        return _notifications() if verb in ("ack", "inbox") else _names(verb, current)
    if slot == "PROCESS":
        return _names(verb, current)
    if slot == "APPROVAL":
        return _approvals()
    if slot in _SESSIONS:
        return _groups("session")
    if slot == "KEY" and verb == "config":
        from holdfast.settings import declared

        return [(setting.name, setting.help) for setting in declared().values()]
    if slot == "TOPIC" and verb == "docs":
        from holdfast.cli.verbs.docs import topics

        return [(topic, about) for topic, _, about in topics()]
    if slot == "NAME" and verb == "queue":
        return _queues()
    if slot == "NAME" and verb == "backends":
        return _backends()
    if slot in ("FILE", "PATH", "SRC", "DST"):
        return "files"
    return "directories" if slot == "DIR" else []


def of_option(option: Option, verb: str) -> Found:
    key, slot = option.key, option.metavar or ""
    if key in ("session", "parent_session", "to"):
        return _groups("session")
    if key == "task":
        return _groups("task")
    if key == "queue":
        return _queues()
    if key == "backend":
        return [("local", "this machine"), *_backends()]
    if slot == "SIGNAL":
        from holdfast.client.signals import signal_names

        return [(name, "") for name in signal_names()]
    if verb == "ps" and key in ("filter", "sort"):
        from holdfast.cli.verbs import ps

        return [(one, "") for one in (ps.filters() if key == "filter" else ps.sort_names())]
    if slot == "K=V":
        return [(name, "current value") for name in sorted(os.environ)]
    return [] if slot in _SESSIONS else of_slot(slot, verb)


def _names(verb: str, current: str) -> Found:
    """Names, and ids of processes without a name; all ids once `proc_` is begun."""
    wants_ids = bool(current) and current.startswith("proc_"[: len(current)])
    found = []
    for process in _processes():
        if (process.status == "ended" and verb in _OF_RUNNING) or (process.status != "ended" and verb in _OF_ENDED):
            continue
        about = f"{outcome(process)}: {process.command}"
        if process.name:
            found.append((process.name, about))
        if wants_ids or not process.name:
            found.append((process.id, about))
    return found


def _groups(field: str) -> Found:
    counts: dict[str, int] = {}
    for process in _processes():
        name = getattr(process, field)
        if name:
            counts[name] = counts.get(name, 0) + 1
    return [(name, f"{count} process{'es' if count > 1 else ''}") for name, count in counts.items()]


def _queues() -> Found:
    found = ask_running("queues", {}).get("queues", [])
    return [(one["name"], f"{len(one['running'])} run, {len(one['waiting'])} wait") for one in found]


def _backends() -> list[tuple[str, str]]:
    """Those of holdfast and of config.toml. No engine is asked whether they can be used."""
    from holdfast.client.fields import BACKENDS
    from holdfast.settings import read_settings

    tables = read_settings(find_paths().config).backends
    return [(name, str(tables.get(name, {}).get("kind", name))) for name in dict.fromkeys([*BACKENDS, *tables])]


def _notifications() -> Found:
    found = ask_running("inbox", {}).get("notifications", [])
    return [(one["id"], f"{one['kind']} of {one['process']}") for one in found]


def _approvals() -> Found:
    """Pending requests, and approvals that can be revoked."""
    found = ask_running("approvals", {}).get("approvals", ())
    return [(str(one["id"]), f"{one['scope'] or one['state']}: {one['command']}") for one in found]


def _processes() -> list[Process]:
    """Newest first; none if no daemon runs."""
    return [Process(fields) for fields in reversed(ask_running("list", {"all": True}).get("processes", []))]


def ask_running(op: str, arguments: Message) -> Message:
    """The reply of the daemon; empty if none runs."""
    sock = launch.find(find_paths())
    if sock is None:
        return {}
    link = greet(sock, launch.session_of(None))
    try:
        return link.call(op, arguments, _LIMIT)[0]
    finally:
        link.close()
