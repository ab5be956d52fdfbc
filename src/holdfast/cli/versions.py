"""Parts of holdfast that are older than this command: after an upgrade they run on until they are replaced."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.version import VERSION, is_older

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def older_parts(greeting: Mapping[str, object]) -> list[str]:
    """One line that names them and the next step; none where all are of this release, or their release is unknown."""
    daemon, keeper = (value if isinstance(value := greeting.get(name), str) else None for name in ("daemon", "keeper"))
    if is_older(daemon):
        also = ", with keeper and anchor," if keeper is None or is_older(keeper) else ""
        return [f"the daemon ({daemon}){also} is older than this command ({VERSION}). Next: holdfast daemon restart"]
    if is_older(keeper):
        what = f"keeper and anchor are older than this command ({VERSION}) and go on until their processes have ended"
        return [f"{what}. Next: then holdfast daemon restart"]
    return []


def say_older_parts(greeting: Mapping[str, object]) -> None:
    for line in older_parts(greeting):
        console.say(line)
