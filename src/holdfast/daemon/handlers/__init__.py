"""One file per operation; this is the table of contents."""

from __future__ import annotations

from holdfast.daemon.handlers import (
    doctor,
    end_session,
    http,
    inspect,
    kill,
    list,
    logs,
    remove,
    resize,
    send,
    sessions,
    start,
    status,
    stop,
    wait,
)
from holdfast.daemon.room import Handler

HANDLERS: dict[str, Handler] = {
    "start": start.handle,
    "list": list.handle,
    "inspect": inspect.handle,
    "logs": logs.handle,
    "wait": wait.handle,
    "kill": kill.handle,
    "send": send.handle,
    "resize": resize.handle,
    "remove": remove.handle,
    "end_session": end_session.handle,
    "sessions": sessions.handle,
    "status": status.handle,
    "doctor": doctor.handle,
    "http": http.handle,
    "stop": stop.handle,
}

#: These go on when the client goes away or gives up: half done would be worse than done, and a client that comes back
#: with the same start finds it done.
GOING_ON = frozenset({"start", "kill", "remove", "end_session", "stop"})
