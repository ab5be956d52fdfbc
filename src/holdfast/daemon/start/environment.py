"""The environment of a command: the login environment, then the caller's variables, then granted ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping

TERM = "xterm-256color"


def merge(
    login: Mapping[str, str], caller: Mapping[str, str], grant: Mapping[str, str], own: Mapping[str, str], pty: bool
) -> dict[str, str]:
    """The environment of a command. `own` holds variables of holdfast, which cannot be overridden."""
    env = {**login, **caller}
    path = merge_path(caller.get("PATH"), login.get("PATH"))
    if path:
        env["PATH"] = path
    if pty:
        env["TERM"] = TERM
        env.pop("COLUMNS", None)
        env.pop("LINES", None)
    env.update(grant)
    env.setdefault("PYTHONUNBUFFERED", "1")
    env.update(own)
    return env


def merge_path(caller: str | None, login: str | None) -> str:
    """The caller's entries in their order, then those of the login environment that are missing."""
    entries = [*(caller or "").split(":"), *(login or "").split(":")]
    return ":".join(dict.fromkeys(entry for entry in entries if entry))


#: Most programs need these: they are kept even if they look like secrets.
NEEDED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR", "PWD"})


def without(env: Mapping[str, str], removed: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in removed}
