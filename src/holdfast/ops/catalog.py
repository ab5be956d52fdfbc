"""All operations by their name on the wire."""

from __future__ import annotations

from holdfast.ops import approvals, daemon, events, output, processes, queues, sessions, start
from holdfast.ops.declare import Operation

_ALL: tuple[type[Operation], ...] = (
    start.Start,
    start.Foreground,
    start.Exec,
    processes.List,
    processes.Inspect,
    processes.Why,
    processes.Counts,
    processes.Top,
    processes.Wait,
    processes.Kill,
    processes.Send,
    processes.Resize,
    processes.Restart,
    processes.ShowScreen,
    processes.Attached,
    processes.Remove,
    processes.Transfer,
    queues.Queues,
    queues.SetQueue,
    output.Logs,
    output.LogTimes,
    output.Search,
    sessions.Sessions,
    sessions.EndSession,
    sessions.RenameSession,
    sessions.Digest,
    sessions.Inbox,
    sessions.Notices,
    sessions.Ack,
    events.Events,
    events.Publish,
    approvals.Approvals,
    approvals.Approve,
    approvals.Deny,
    approvals.ApprovalShown,
    approvals.ApprovalPassword,
    approvals.Askpass,
    approvals.Judge,
    approvals.Audit,
    daemon.Status,
    daemon.Doctor,
    daemon.Http,
    daemon.Stop,
    daemon.Redact,
    daemon.Sinks,
    daemon.SinkTest,
    daemon.SinkDead,
    daemon.SinkRetry,
)

OPERATIONS: dict[str, type[Operation]] = {operation.op: operation for operation in _ALL}
