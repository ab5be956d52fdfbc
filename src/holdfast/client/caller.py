"""The state that both clients share, and what a command inherits: environment, directory, umask, session."""

from __future__ import annotations

import os

from holdfast.errors import BadValue
from holdfast.paths import find_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.http_exchange import HttpAddress
    from holdfast.paths import Paths

DEFAULT_SESSION = "default"


class ClientState:
    """The state of a client, blocking or not."""

    def __init__(
        self,
        session: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        url: str | None = None,
        token: str | None = None,
        strict: bool = False,
    ) -> None:
        self.session = session_of(session)
        self.is_strict = strict
        self.paths = find_paths({"HOLDFAST_HOME": os.fspath(home)} if home is not None else None)
        #: How far the input of a process reached when this client last wrote to it.
        self.accepted: dict[str, int] = {}
        self._address = address_of(url, token, home is not None, self.paths)
        #: How long a connection over HTTP may take: not at all, until the daemon is known to be there.
        self._connect_timeout = 0.0
        self._is_open = True
        #: Ids of notifications that replies to this client contained.
        self._delivered: list[str] = []


def new_id() -> str:
    """A new id. The client chooses it, so that a repeated request starts one process."""
    return f"proc_{os.urandom(6).hex()}"


def address_of(url: str | None, token: str | None, is_home_named: bool, paths: Paths) -> HttpAddress | None:
    """The HTTP address of the daemon; None for the socket of the instance. Raises BadValue."""
    if url is None:
        url = None if is_home_named else os.environ.get("HOLDFAST_URL") or None
    if url is None:
        return None
    from holdfast.client.http_exchange import find_address

    return find_address(url, token, paths)


def in_own_words(op: str, error: BadValue) -> BadValue:
    """The error of an operation, with the name that a field has as a parameter of the method."""
    from holdfast.ops.catalog import OPERATIONS

    field, space, rest = error.message.partition(" ")
    names = OPERATIONS[op].traits.names if op in OPERATIONS else {}
    if space and field in names:
        return BadValue(f"{names[field]} {rest}", next=error.next, data=error.data)
    return error


def session_of(named: str | None) -> str:
    if named is None:
        return os.environ.get("HOLDFAST_SESSION") or DEFAULT_SESSION
    if not named:
        raise BadValue("a session has 1 to 256 printable characters", next="name one, or leave it out")
    return named


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
