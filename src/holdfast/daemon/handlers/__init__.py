"""One file per operation; this is the table of contents."""

from __future__ import annotations

from holdfast.daemon.handlers import (
    approvals,
    attached,
    audit,
    doctor,
    end_session,
    events,
    http,
    inbox,
    inspect,
    kill,
    list,
    logs,
    owners,
    remove,
    resize,
    restart,
    screen,
    search,
    send,
    sessions,
    sinks,
    start,
    status,
    stop,
    top,
    wait,
)
from holdfast.daemon.room import Handler

HANDLERS: dict[str, Handler] = {
    "start": start.handle,
    "list": list.handle,
    "inspect": inspect.handle,
    "logs": logs.handle,
    "search": search.handle,
    "wait": wait.handle,
    "kill": kill.handle,
    "send": send.handle,
    "resize": resize.handle,
    "restart": restart.handle,
    "screen": screen.handle,
    "attached": attached.handle,
    "remove": remove.handle,
    "end_session": end_session.handle,
    "events": events.handle,
    "publish": events.publish,
    "sessions": sessions.handle,
    "inbox": inbox.handle,
    "ack": inbox.ack,
    "transfer": owners.transfer,
    "rename_session": owners.rename,
    "sinks": sinks.handle,
    "sink_test": sinks.test,
    "sink_dead": sinks.dead,
    "sink_retry": sinks.retry,
    "approvals": approvals.handle,
    "approve": approvals.approve,
    "deny": approvals.deny,
    "approval_shown": approvals.shown,
    "audit": audit.handle,
    "status": status.handle,
    "doctor": doctor.handle,
    "http": http.handle,
    "stop": stop.handle,
    "top": top.handle,
}

#: These go on when the client goes away or gives up: half done would be worse than done, and a client that comes back
#: with the same start finds it done.
GOING_ON = frozenset(
    {
        "start",
        "kill",
        "restart",
        "remove",
        "end_session",
        "ack",
        "transfer",
        "rename_session",
        "stop",
        "approve",
        "deny",
    }
)
