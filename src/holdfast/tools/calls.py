"""The tools as plain calls: each session's are made when they are first used."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from holdfast.client import caller
from holdfast.paths import find_paths
from holdfast.tools.arguments import named, text
from holdfast.tools.envelope import Refusal, refused, to_text
from holdfast.tools.sync import Tools

#: So many sessions are held open at once.
_MOST = 32

_tools: dict[tuple[str, str], Tools] = {}
_lock = threading.Lock()


def terminal(*values: object, **arguments: object) -> str:
    """Run a command: the arguments of TERMINAL_SCHEMA, by name or in its order, and `session`.

    The answer is JSON. Nothing raises.
    """
    return _call("terminal", values, arguments)


def process(*values: object, **arguments: object) -> str:
    """Do something with a process: the arguments of PROCESS_SCHEMA, by name or in its order, and `session`.

    The answer is JSON. Nothing raises.
    """
    return _call("process", values, arguments)


async def aterminal(*values: object, **arguments: object) -> str:
    """As `terminal`, for asyncio."""
    return await _acall("terminal", values, arguments)


async def aprocess(*values: object, **arguments: object) -> str:
    """As `process`, for asyncio."""
    return await _acall("process", values, arguments)


def interrupt(session: str | None = None) -> int:
    """End the foreground command, or the wait, of the session, here and wherever else; background ones go on."""
    return tools_of(session).interrupt()


def tools_of(session: str | None = None) -> Tools:
    """The tools of a session of the instance that HOLDFAST_HOME names now."""
    key = (find_paths().home, caller.session_of(session))
    with _lock:
        found = _tools.pop(key, None) or Tools(key[1])
        _tools[key] = found
        unused = [_tools.pop(next(iter(_tools)))] if len(_tools) > _MOST else []
    for tools in unused:
        tools.close()
    return found


def close_all() -> None:
    with _lock:
        unused = list(_tools.values())
        _tools.clear()
    for tools in unused:
        tools.close()


def _call(name: str, values: Sequence[object], arguments: Mapping[str, object]) -> str:
    try:
        tools, given = _chosen(name, values, arguments)
    except Refusal as refusal:
        return to_text(refused(refusal))
    return tools.call(name, given)


async def _acall(name: str, values: Sequence[object], arguments: Mapping[str, object]) -> str:
    try:
        tools, given = _chosen(name, values, arguments)
    except Refusal as refusal:
        return to_text(refused(refusal))
    made: str = await tools.start("call", name, given)
    return made


def _chosen(name: str, values: Sequence[object], arguments: Mapping[str, object]) -> tuple[Tools, dict[str, object]]:
    """Raises Refusal."""
    given = named(name, values, arguments)
    session = text(given, "session", 1024)
    given.pop("session", None)
    return tools_of(session or None), given
