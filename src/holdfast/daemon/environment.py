"""The environment of a command: the login environment, the caller's over it, what was granted over that."""

from __future__ import annotations

from collections.abc import Mapping

TERM = "xterm-256color"


def merge(
    login: Mapping[str, str], caller: Mapping[str, str], grant: Mapping[str, str], own: Mapping[str, str], pty: bool
) -> dict[str, str]:
    """What a command gets to see. `own` is ours and cannot be overridden."""
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


#: What our own processes may know of the environment that they were started from.
_KEPT = frozenset({"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR"})
_KEPT_BEGINNINGS = ("LC_", "XDG_", "HOLDFAST_")
#: The marks of a held command: with them we would count among its descendants, and end with it.
_NEVER_KEPT = frozenset({"HOLDFAST_ID", "HOLDFAST_SESSION"})


def minimal(environ: Mapping[str, str]) -> dict[str, str]:
    """As much of an environment as holdfast itself needs; no secret of whoever started it is among it."""
    return {
        name: value
        for name, value in environ.items()
        if (name in _KEPT or name.startswith(_KEPT_BEGINNINGS)) and name not in _NEVER_KEPT
    }
