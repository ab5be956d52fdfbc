"""The options that a process was started with, as a line for the shell: `holdfast run -d …`."""

from __future__ import annotations

import os
from shlex import join

from holdfast import light_json
from holdfast.cli.run_options import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.options import Option
    from holdfast.wire.frames import Message

_SIZES = (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10))
_OF_SIZES = frozenset({"memory", "log_cap"})


def command_line(spec: Message) -> tuple[str, list[str]]:
    """The line, and messages about what is not in it."""
    words = ["holdfast", "run", "-d"]
    for option in OPTIONS:
        value = spec.get(option.key)
        if value in (None, False, [], {}) or (option.key == "session" and value == _session()):
            continue
        for text in _texts(option.key, value):
            words += _words(option, text)
    words += ["-c", spec["command"]] if "command" in spec else ["--", *spec.get("argv", ())]
    return join(words), list(_left_out(spec))


def _session() -> str:
    return os.environ.get("HOLDFAST_SESSION") or "default"


def _words(option: Option, text: str | None) -> list[str]:
    name = option.names[-1]
    if text is None:
        return [name]
    return [f"{name}={text}"] if option.implies is not None else [name, text]


def _texts(key: str, value: Any) -> list[str | None]:
    """What the option is given: once for each text; None for a flag."""
    if value is True:
        return [None]
    if key == "env":
        return [f"{name}={text}" for name, text in value.items()]
    if key == "size":
        return ["x".join(map(str, value))]
    if key == "success_codes":
        return [",".join(map(str, value))]
    if isinstance(value, list):
        return list(value)
    if isinstance(value, dict):
        return [light_json.dumps(value)]
    if key in _OF_SIZES:
        return [next((f"{value // size}{unit}" for unit, size in _SIZES if value % size == 0), str(value))]
    return [f"{value:g}" if isinstance(value, float) and f"{value:g}" == str(value).removesuffix(".0") else str(value)]


def _left_out(spec: Message) -> list[str]:
    found = []
    if spec.get("omitted"):
        names = ", ".join(spec["omitted"])
        found.append(f"left out, because they look like secrets or are not kept: {names}; add them with --env NAME")
    if spec.get("labels"):
        found.append(f"left out, because run has no option for it: labels {', '.join(spec['labels'])}")
    return found
