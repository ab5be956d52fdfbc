"""What a hook of Claude Code or Codex does: puts the pending notices of its session into the conversation, once.

Notices are acknowledged after they were written: what a host never read comes again.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time
from contextlib import suppress

from holdfast import light_json
from holdfast.client.link import DaemonStopped, connect_again
from holdfast.client.sync import connect
from holdfast.errors import HoldfastError
from holdfast.integrations import hosts
from holdfast.model.notices import notice_texts
from holdfast.paths import find_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.results.notification import Notification
    from holdfast.client.sync import Client
    from holdfast.integrations.hosts import Host
    from holdfast.wire.frames import Message

#: Seconds within which a host has its answer.
_ANSWER_TIMEOUT = 5
_MOST_NOTICES = 5
#: The exit code by which the host knows that there is something to show to the model.
WAKE = 2
#: Seconds between looks at which session the host has open.
_INBOX_WAIT = 60.0
_LARGEST_INPUT = 16 << 20
#: Sources of a session start with which the conversation goes on under another id.
_CONTINUED = ("clear", "compact")


def answer(client_name: str) -> None:
    """Read the event from stdin, and answer on stdout. Raises HoldfastError, OSError, TimeoutError."""
    _limit_time()
    event = _read_input()
    session = hosts.session_name(client_name, event.get("session_id"))
    home = find_paths().home
    if session is None:
        return
    is_used = os.path.exists(f"{home}/store.db")
    if (host := hosts.host_of_hook(client_name)) is not None:
        _open(home, host, session, is_used, goes_on=event.get("source") in _CONTINUED)
    if not is_used:
        return  # nothing was ever started here
    with connect(session) as client:
        name = str(event.get("hook_event_name"))
        if name == "SessionEnd":
            _end(client, session, str(event.get("reason")))
            return
        _show(client, session, name, bool(event.get("stop_hook_active")), forgot=event.get("source") == "compact")


def _limit_time() -> None:
    def give_up(*_: object) -> None:
        raise TimeoutError("the daemon did not answer in time")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(_ANSWER_TIMEOUT)


def _read_input() -> Message:
    if sys.stdin is None:
        raise HoldfastError("stdin is closed", next="this is for hooks to call")
    said = light_json.loads(sys.stdin.buffer.read(_LARGEST_INPUT).decode(errors="replace"))
    if not isinstance(said, dict):
        raise HoldfastError("stdin has no event of a hook", next="this is for hooks to call")
    return said


def _open(home: str, host: Host, session: str, is_used: bool, goes_on: bool) -> None:
    """Note which session the host has open. The one before is renamed, now or, if this fails, with the next hook."""
    before = hosts.session_of(home, host)
    if before == session:
        return
    if before is not None and is_used and (goes_on or hosts.becoming(home, host) == session):
        hosts.bind(home, host, before, becomes=session)
        with connect(before) as client:
            client.rename_session(before, session)
    hosts.bind(home, host, session)
    hosts.sweep(home)


def _end(client: Client, session: str, reason: str) -> None:
    """End the processes that live as long as the session. Others go on, for a conversation that is resumed."""
    if reason not in (*_CONTINUED, "resume"):
        client.end_session(session, keep=True)


def _show(client: Client, session: str, event: str, is_again: bool, forgot: bool) -> None:
    if event == "Stop" and is_again:
        return  # the model has just been kept from stopping: the rest waits for the next prompt
    notices = client.inbox(session=session, limit=_MOST_NOTICES, take=True)
    digest = client.digest(session) if event == "SessionStart" or len(notices) == _MOST_NOTICES else None
    shown = _digest(client, digest, forgot) if digest is not None and event == "SessionStart" else ""
    text = _text(notices, session, shown, digest["pending"] if digest is not None else 0)
    if text:
        _write(light_json.dumps(_shaped(event, text)))
        if notices:
            client.ack(*notices, session=session)


def _digest(client: Client, found: Message, forgot: bool) -> str:
    """What still runs; for a model whose context is gone also what ended lately. Others get each end once."""
    text = found["text"] if forgot else notice_texts.digest(found["processes"], time.time(), found["pending"])
    return client.redact(text)[0] if text else ""


def _text(notices: list[Notification], session: str, digest: str = "", pending: int = 0) -> str:
    """For the model: what still runs in the session, the notices, and how many more of the `pending` ones there are."""
    parts = [digest, *(notice.text for notice in notices)]
    if (more := pending - len(notices)) > 0:
        what = "notification" if more == 1 else "notifications"
        parts.append(f"And {more} more {what}: holdfast inbox --session {session}")
    return "\n\n".join(part for part in parts if part)


def _shaped(event: str, text: str) -> Message:
    if event in ("Stop", "SubagentStop"):
        return {"decision": "block", "reason": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _write(text: str) -> None:
    """Past the buffer: what cannot be written is not tried again when the program ends."""
    data = memoryview(f"{text}\n".encode(errors="backslashreplace"))
    while data:
        data = data[os.write(1, data) :]


def wait(client_name: str) -> int:
    """Wait for notices in the background of an idle conversation, and wake its model with them.

    The host runs it after every turn; one waits, the others leave. It ends with the host. The exit code: WAKE once
    notices were written to stderr, 0 where there is nothing to wait for.
    """
    event = _read_input()
    home = find_paths().home
    host = hosts.host_of_hook(client_name)
    session = hosts.session_name(client_name, event.get("session_id"))
    if host is None or session is None or not _is_interactive() or not _is_first(home, host):
        return 0
    _end_with(host)
    while True:
        if not os.environ.get("HOLDFAST_URL"):
            connect_again(find_paths(), float("inf")).close()  # a daemon that was stopped is not started for a wait
        session = hosts.session_of(home, host) or session
        with suppress(DaemonStopped):
            if _wait_once(session):
                return WAKE


def _is_interactive() -> bool:
    """Whether the conversation goes on after a turn; a run with a single prompt is over then."""
    return os.environ.get("CLAUDE_CODE_ENTRYPOINT", "cli") == "cli"


def _is_first(home: str, host: Host) -> bool:
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
    import select
    import threading

    fd = os.pidfd_open(host[0])

    def watch() -> None:
        select.select([fd], [], [])
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _wait_once(session: str) -> bool:
    with connect(session) as client:
        notices = client.inbox(session=session, wait=_INBOX_WAIT, limit=_MOST_NOTICES, take=True)
        if not notices:
            return False
        pending = client.digest(session)["pending"] if len(notices) == _MOST_NOTICES else 0
        sys.stderr.write(f"{_text(notices, session, pending=pending)}\n")
        sys.stderr.flush()
        client.ack(*notices, session=session)
        return True
