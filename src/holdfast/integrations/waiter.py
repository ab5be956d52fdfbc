"""Waits for news in the background of an idle conversation, and wakes its model with them.

The host runs it after every turn; one of them waits, the others leave. It ends with the host.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading

from holdfast.client.sync import connect
from holdfast.integrations import hosts
from holdfast.integrations.hook import MOST, news, said_by_host
from holdfast.paths import find_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.integrations.hosts import Host

#: The exit code by which the host knows that there is something to tell.
WAKE = 2
#: Seconds between looks at which session the host has open.
_SLICE = 60.0


def wait(client_name: str) -> int:
    """The exit code: WAKE once news was written to stderr, 0 where there is nobody to wait for."""
    said = said_by_host()
    home = find_paths().home
    host = hosts.host_of_hook(client_name)
    session = hosts.session_name(client_name, said.get("session_id"))
    if host is None or session is None or not _is_attended() or not _is_only(home, host):
        return 0
    _end_with(host)
    while True:
        session = hosts.session_of(home, host) or session
        if _told(session):
            return WAKE


def _is_attended() -> bool:
    """Whether the conversation goes on after a turn; a run with a single prompt is over then."""
    return os.environ.get("CLAUDE_CODE_ENTRYPOINT", "cli") == "cli"


def _is_only(home: str, host: Host) -> bool:
    path = hosts.lock_path(home, host)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return False
    return True


def _end_with(host: Host) -> None:
    fd = os.pidfd_open(host[0])

    def watch() -> None:
        import select

        select.select([fd], [], [])
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _told(session: str) -> bool:
    with connect(session) as client:
        notices = client.inbox(session=session, wait=_SLICE, limit=MOST, take=True)
        if not notices:
            return False
        sys.stderr.write(f"{news(client, notices)}\n")
        sys.stderr.flush()
        client.ack(*notices, session=session)
        return True
