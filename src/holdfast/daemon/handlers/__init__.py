"""The handlers of all operations, and the table that assigns them. A reply means that it has happened.

A handler gets the context, the call and the checked request; its docstring says what the reply guarantees.
"""

from __future__ import annotations

from holdfast.daemon.core.context import Handler
from holdfast.daemon.handlers import (
    agents,
    approvals,
    askpass,
    backends,
    control,
    daemon,
    doctor,
    events,
    extensions,
    files,
    foreground,
    inbox,
    listing,
    logs,
    projects,
    queues,
    search,
    send,
    sessions,
    sinks,
    start,
    terminal,
    wait,
    why,
)
from holdfast.ops import agents as agent_ops
from holdfast.ops import approvals as approval_ops
from holdfast.ops import backends as backend_ops
from holdfast.ops import daemon as daemon_ops
from holdfast.ops import dashboard as dashboard_ops
from holdfast.ops import events as event_ops
from holdfast.ops import files as file_ops
from holdfast.ops import output as output_ops
from holdfast.ops import processes as process_ops
from holdfast.ops import projects as project_ops
from holdfast.ops import queues as queue_ops
from holdfast.ops import sessions as session_ops
from holdfast.ops.declare import Operation
from holdfast.ops.start import Exec, Foreground, Start

HANDLERS: dict[type[Operation], Handler] = {
    Start: start.handle,
    Foreground: foreground.handle,
    Exec: start.handle_exec,
    process_ops.List: listing.list_processes,
    process_ops.Inspect: listing.inspect,
    process_ops.Why: why.handle,
    process_ops.Counts: listing.counts,
    process_ops.Top: listing.top,
    process_ops.Glance: listing.glance,
    process_ops.ProcessEvents: events.of_process,
    process_ops.Wait: wait.handle,
    process_ops.Kill: control.kill,
    process_ops.Send: send.handle,
    process_ops.Resize: terminal.resize,
    process_ops.Restart: control.restart,
    process_ops.ShowScreen: terminal.screen,
    process_ops.Attached: terminal.attached,
    process_ops.Remove: control.remove,
    process_ops.Transfer: control.transfer,
    project_ops.ControlProject: projects.control,
    queue_ops.Queues: queues.handle,
    queue_ops.SetQueue: queues.change,
    queue_ops.RemoveQueue: queues.remove,
    backend_ops.Backends: backends.handle,
    backend_ops.CleanBackends: backends.clean,
    backend_ops.StopBackend: backends.stop,
    backend_ops.BackendLogin: backends.login,
    output_ops.Logs: logs.handle,
    output_ops.LogTimes: logs.times,
    output_ops.Search: search.handle,
    file_ops.PutFile: files.put,
    file_ops.GetFile: files.get,
    session_ops.Sessions: sessions.sessions,
    session_ops.EndSession: sessions.end_session,
    session_ops.RenameSession: sessions.rename_session,
    session_ops.Digest: sessions.digest,
    session_ops.Inbox: inbox.handle,
    session_ops.Notices: inbox.follow,
    session_ops.Ack: inbox.ack,
    agent_ops.Agents: agents.list_agents,
    agent_ops.AgentLog: agents.read_log,
    agent_ops.AgentStart: agents.start_agent,
    agent_ops.AgentSend: agents.send,
    agent_ops.AgentSettings: agents.change_settings,
    agent_ops.AgentControl: agents.control,
    event_ops.Events: events.handle,
    event_ops.Publish: events.publish,
    approval_ops.Approvals: approvals.handle,
    approval_ops.RequestApproval: approvals.request,
    approval_ops.Approve: approvals.approve,
    approval_ops.Deny: approvals.deny,
    approval_ops.ApprovalShown: approvals.shown,
    approval_ops.ApprovalPassword: approvals.password,
    approval_ops.Askpass: askpass.handle,
    approval_ops.Judge: approvals.judge,
    approval_ops.Audit: approvals.audit,
    daemon_ops.Status: daemon.status,
    daemon_ops.Doctor: doctor.handle,
    daemon_ops.Http: daemon.http,
    daemon_ops.Dashboard: daemon.dashboard,
    dashboard_ops.Plugins: extensions.list_plugins,
    dashboard_ops.SetPlugin: extensions.set_plugin,
    dashboard_ops.Themes: extensions.list_themes,
    daemon_ops.Stop: daemon.stop,
    daemon_ops.Redact: daemon.redact,
    daemon_ops.ShowSettings: daemon.show_settings,
    daemon_ops.Sinks: sinks.handle,
    daemon_ops.SinkTest: sinks.test,
    daemon_ops.SinkDead: sinks.dead,
    daemon_ops.SinkRetry: sinks.retry,
}
