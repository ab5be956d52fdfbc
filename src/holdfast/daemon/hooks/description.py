"""The description of a hook: `hooks/NAME/hook.toml`. What is invalid is reported, not guessed."""

from __future__ import annotations

import os
import sys
from typing import Any

from holdfast.errors import BadValue, Denied
from holdfast.paths import check_private_tree
from holdfast.records import Struct

#: How long a hook may take for one event, unless it sets another timeout.
_TIMEOUT = 30.0
_LONGEST = 3600.0
_KEYS = ("topics", "command", "python", "timeout", "enabled")

#: Runs `python = "file.py:function"`: the function gets the event.
_PYTHON = """\
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("hook", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
getattr(module, sys.argv[2])(json.load(sys.stdin))
"""


class Hook(Struct, frozen=True):
    name: str
    directory: str
    topics: tuple[str, ...]
    argv: tuple[str, ...]
    timeout: float


def read_all(directory: str) -> tuple[list[Hook], list[BadValue]]:
    """The hooks that are enabled, by name, and what is wrong with the others."""
    hooks, wrong = [], []
    for name in sorted(_names(directory)):
        try:
            hook = read(name, f"{directory}/{name}")
        except BadValue as bad:
            wrong.append(bad)
        else:
            if hook is not None:
                hooks.append(hook)
    return hooks, wrong


def read(name: str, directory: str) -> Hook | None:
    """The hook in a directory; None when it is not enabled. Raises BadValue, also when others could have written it."""
    import tomllib

    path = f"{directory}/hook.toml"
    try:
        check_private_tree(directory)
    except Denied as refused:
        raise BadValue(f"{refused.message}; {refused.next}") from refused
    except OSError as broken:
        raise _wrong(path, str(broken)) from broken
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as broken:
        raise _wrong(path, str(broken)) from broken
    unknown = table.keys() - set(_KEYS)
    if unknown:
        raise _wrong(path, f"unknown {', '.join(sorted(unknown))}; known: {', '.join(_KEYS)}")
    if table.get("enabled", True) is False:
        return None
    return Hook(name, directory, _topics(path, table), _argv(path, directory, table), _timeout(path, table))


def _names(directory: str) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(directory) if os.path.exists(f"{entry.path}/hook.toml")]
    except OSError:
        return []


def _topics(path: str, table: dict[str, Any]) -> tuple[str, ...]:
    topics = table.get("topics")
    if isinstance(topics, str):
        topics = [topics]
    if not isinstance(topics, list) or not topics or not all(isinstance(one, str) and one.strip() for one in topics):
        raise _wrong(path, 'topics must be a list of patterns, as in topics = ["process.ended"]')
    return tuple(topics)


def _argv(path: str, directory: str, table: dict[str, Any]) -> tuple[str, ...]:
    match table.get("command"), table.get("python"):
        case str(text), None if text.strip():
            return ("/bin/sh", "-c", text)
        case [*words], None if words and all(isinstance(word, str) for word in words):
            return tuple(words)
        case None, str(handler) if handler.count(":") == 1:
            file, function = handler.split(":")
            return (sys.executable, "-c", _PYTHON, os.path.join(directory, file), function)
    raise _wrong(path, 'give either command = "text" or [words], or python = "file.py:function"')


def _timeout(path: str, table: dict[str, Any]) -> float:
    timeout = table.get("timeout", _TIMEOUT)
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool) or not 0 < timeout <= _LONGEST:
        raise _wrong(path, f"timeout must be seconds, more than 0 and at most {_LONGEST:.0f}")
    return float(timeout)


def _wrong(path: str, what: str) -> BadValue:
    return BadValue(f"{path}: {what}", next=f"correct {path}")
