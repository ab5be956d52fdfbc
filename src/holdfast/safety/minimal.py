"""The environment of our own processes: nothing in it is a secret, for commands can read it in /proc. No I/O."""

from __future__ import annotations

from holdfast.safety.secrets import is_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: What our own processes may know of the environment that they were started from.
_KEPT = frozenset({"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR"})
_KEPT_BEGINNINGS = ("LC_", "XDG_", "HOLDFAST_")
#: The marks of a held command: with them we would count among its descendants, and end with it.
_NEVER_KEPT = frozenset({"HOLDFAST_ID", "HOLDFAST_SESSION"})


def minimal(environ: Mapping[str, str]) -> dict[str, str]:
    """As much of an environment as holdfast itself needs; no secret of whoever started it is among it."""
    return {name: value for name, value in environ.items() if name in _KEPT or _is_kept(name, value)}


def _is_kept(name: str, value: str) -> bool:
    return name.startswith(_KEPT_BEGINNINGS) and name not in _NEVER_KEPT and not is_secret(name, value)
