"""What a command inherits from the one who starts it: environment, directory, umask, session."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.http_exchange import HttpAddress
    from holdfast.paths import Paths

DEFAULT_SESSION = "default"


def new_id() -> str:
    """An id that nobody has. The client chooses it, so that asking twice starts once."""
    return f"proc_{os.urandom(6).hex()}"


def place_of(url: str | None, token: str | None, is_home_named: bool, paths: Paths) -> HttpAddress | None:
    """Where to speak HTTP; None for the instance's own socket, which is the rule. Raises BadValue."""
    if url is None:
        url = None if is_home_named else os.environ.get("HOLDFAST_URL") or None
    if url is None:
        return None
    from holdfast.client.http_exchange import find_address

    return find_address(url, token, paths)


def session_of(named: str | None) -> str:
    return named or os.environ.get("HOLDFAST_SESSION") or DEFAULT_SESSION


def environment() -> dict[str, str]:
    return dict(os.environ)


def directory() -> tuple[str, tuple[str, ...]]:
    """The current directory; a fallback and a note about it when that was deleted."""
    try:
        return os.getcwd(), ()
    except FileNotFoundError:
        home = os.path.expanduser("~")
        fallback = home if os.path.isdir(home) else "/"
        return fallback, (f"the current directory is gone; running in {fallback}",)


def umask() -> int:
    """The umask, read without setting it: other threads may be making files."""
    try:
        status = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            beginning = os.read(status, 256)
        finally:
            os.close(status)
        return int(beginning.partition(b"\nUmask:")[2].split(None, 1)[0], 8)
    except (OSError, IndexError):
        return 0o022
