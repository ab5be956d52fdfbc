"""What a hook of Claude Code or Codex does: tells the conversation what its session is yet to hear, once.

News is acknowledged only after it was written: what a host never read is told again.
"""

from __future__ import annotations

import os
import signal
import sys

from holdfast.client.sync import connect
from holdfast.errors import HoldfastError
from holdfast.integrations import hosts
from holdfast.paths import find_paths
from holdfast.wire import light_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.notification import Notification
    from holdfast.client.sync import Client
    from holdfast.integrations.hosts import Host
    from holdfast.wire.frames import Message

#: Seconds within which a host has its answer.
_PATIENCE = 5
#: So many are told at once.
MOST = 5
_LARGEST = 16 << 20
#: What a host says of itself, and the conversation goes on under another id.
_GOES_ON = ("clear", "compact")


def answer(client_name: str) -> None:
    """Read what the host says on stdin, and answer on stdout. Raises HoldfastError, OSError, TimeoutError."""
    _limit_time()
    said = said_by_host()
    session = hosts.session_name(client_name, said.get("session_id"))
    home = find_paths().home
    if session is None:
        return
    is_used = os.path.exists(f"{home}/store.db")
    if (host := hosts.host_of_hook(client_name)) is not None:
        _open(home, host, session, is_used, goes_on=said.get("source") in _GOES_ON)
    if not is_used:
        return  # nothing was ever started here
    with connect(session) as client:
        event = str(said.get("hook_event_name"))
        if event == "SessionEnd":
            _end(client, session, str(said.get("reason")))
            return
        _tell(client, session, event, is_again=bool(said.get("stop_hook_active")))


def _limit_time() -> None:
    def give_up(*_: object) -> None:
        raise TimeoutError("the daemon did not answer in time")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(_PATIENCE)


def said_by_host() -> Message:
    if sys.stdin is None:
        raise HoldfastError("stdin is closed", next="hooks call this, people do not")
    said = light_json.loads(sys.stdin.buffer.read(_LARGEST).decode(errors="replace"))
    if not isinstance(said, dict):
        raise HoldfastError("what came on stdin is no hook's object", next="hooks call this, people do not")
    return said


def _open(home: str, host: Host, session: str, is_used: bool, goes_on: bool) -> None:
    """Say which session the host has open. What it had goes on as that, now or, if this fails, with the next hook."""
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
    """What was to live as long as the session ends. The rest goes on, and a conversation that is resumed finds it."""
    if reason not in (*_GOES_ON, "resume"):
        client.end_session(session, keep=True)


def _tell(client: Client, session: str, event: str, is_again: bool) -> None:
    if event == "Stop" and is_again:
        return  # the model has just been kept from stopping: the rest waits for the next prompt
    notices = client.inbox(session=session, limit=MOST, take=True)
    text = news(client, notices, session if event == "SessionStart" else None)
    if text:
        _write(light_json.dumps(_shaped(event, text)))
        if notices:
            client.ack(*notices, session=session)


def news(client: Client, notices: list[Notification], digest_of: str | None = None) -> str:
    """What a model is told: what still runs, where that is asked for, and then the notices."""
    parts = [notice.text for notice in notices]
    if digest_of is not None:
        parts = [*client.redact(str(client.digest(digest_of)["text"] or "")), *parts]
    return "\n\n".join(part for part in parts if part)


def _shaped(event: str, text: str) -> Message:
    if event in ("Stop", "SubagentStop"):
        return {"decision": "block", "reason": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _write(text: str) -> None:
    """At once, past the buffer: what cannot be written is not tried again when the program ends."""
    data = memoryview(f"{text}\n".encode(errors="backslashreplace"))
    while data:
        data = data[os.write(1, data) :]
