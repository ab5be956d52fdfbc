"""One module per operation or group of operations, and the table that assigns them."""

from __future__ import annotations

from holdfast.daemon.core.context import Handler
from holdfast.daemon.handlers import (
    approvals,
    askpass,
    attached,
    audit,
    digest,
    doctor,
    end_session,
    events,
    foreground,
    http,
    inbox,
    inspect,
    kill,
    list,
    logs,
    owners,
    redact,
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
from holdfast.ops import approvals as approval_ops
from holdfast.ops import daemon as daemon_ops
from holdfast.ops import events as event_ops
from holdfast.ops import output as output_ops
from holdfast.ops import processes as process_ops
from holdfast.ops import sessions as session_ops
from holdfast.ops.declare import Operation
from holdfast.ops.start import Foreground, Start

HANDLERS: dict[type[Operation], Handler] = {
    Start: start.handle,
    Foreground: foreground.handle,
    process_ops.List: list.handle,
    process_ops.Inspect: inspect.handle,
    process_ops.Top: top.handle,
    process_ops.Wait: wait.handle,
    process_ops.Kill: kill.handle,
    process_ops.Send: send.handle,
    process_ops.Resize: resize.handle,
    process_ops.Restart: restart.handle,
    process_ops.ShowScreen: screen.handle,
    process_ops.Attached: attached.handle,
    process_ops.Remove: remove.handle,
    process_ops.Transfer: owners.transfer,
    output_ops.Logs: logs.handle,
    output_ops.Search: search.handle,
    session_ops.Sessions: sessions.handle,
    session_ops.EndSession: end_session.handle,
    session_ops.RenameSession: owners.rename,
    session_ops.Digest: digest.handle,
    session_ops.Inbox: inbox.handle,
    session_ops.Notices: inbox.follow,
    session_ops.Ack: inbox.ack,
    event_ops.Events: events.handle,
    event_ops.Publish: events.publish,
    approval_ops.Approvals: approvals.handle,
    approval_ops.Approve: approvals.approve,
    approval_ops.Deny: approvals.deny,
    approval_ops.ApprovalShown: approvals.shown,
    approval_ops.ApprovalPassword: approvals.password,
    approval_ops.Askpass: askpass.handle,
    approval_ops.Audit: audit.handle,
    daemon_ops.Status: status.handle,
    daemon_ops.Doctor: doctor.handle,
    daemon_ops.Http: http.handle,
    daemon_ops.Stop: stop.handle,
    daemon_ops.Redact: redact.handle,
    daemon_ops.Sinks: sinks.handle,
    daemon_ops.SinkTest: sinks.test,
    daemon_ops.SinkDead: sinks.dead,
    daemon_ops.SinkRetry: sinks.retry,
}
