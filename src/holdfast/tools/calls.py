"""The tools as plain calls: each session's are made when they are first used."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from holdfast.client import caller
from holdfast.paths import find_paths
from holdfast.tools.arguments import named, text
from holdfast.tools.envelope import Refusal, refused, to_text
from holdfast.tools.sync import Tools

#: So many sessions are held open at once.
_MOST = 32

_tools: dict[tuple[str, str], Tools] = {}
#: How many calls of each are under way.
_busy: dict[Tools, int] = {}
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
    with _used(session) as tools:
        return tools.interrupt()


@contextmanager
def _used(session: str | None) -> Iterator[Tools]:
    """The tools of a session of the instance that HOLDFAST_HOME names now; they are not let go meanwhile."""
    key = (find_paths().home, caller.session_of(session))
    with _lock:
        found = _tools.pop(key, None)
        tools = _tools[key] = found or Tools(key[1])
        _busy[tools] = _busy.get(tools, 0) + 1
    try:
        yield tools
    finally:
        with _lock:
            _busy[tools] -= 1
            if not _busy[tools]:
                del _busy[tools]
            unused = _let_go()
        for one in unused:
            one.close()


def _let_go() -> list[Tools]:
    """Those beyond the most that are held open, of those that nobody uses now."""
    idle = [key for key, tools in _tools.items() if tools not in _busy]
    return [_tools.pop(key) for key in idle[: max(0, len(_tools) - _MOST)]]


def close_all() -> None:
    with _lock:
        unused = list(_tools.values())
        _tools.clear()
    for tools in unused:
        tools.close()


def _call(name: str, values: Sequence[object], arguments: Mapping[str, object]) -> str:
    try:
        session, given = _chosen(name, values, arguments)
    except Refusal as refusal:
        return to_text(refused(refusal))
    with _used(session) as tools:
        return tools.call(name, given)


async def _acall(name: str, values: Sequence[object], arguments: Mapping[str, object]) -> str:
    try:
        session, given = _chosen(name, values, arguments)
    except Refusal as refusal:
        return to_text(refused(refusal))
    with _used(session) as tools:
        made: str = await tools.start("call", name, given)
    return made


def _chosen(
    name: str, values: Sequence[object], arguments: Mapping[str, object]
) -> tuple[str | None, dict[str, object]]:
    """The session that is meant, and the other arguments. Raises Refusal."""
    given = named(name, values, arguments)
    session = text(given, "session", 1024)
    given.pop("session", None)
    return session or None, given
