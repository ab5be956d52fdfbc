"""The handlers of all operations, and the table that assigns them. A reply means that it has happened.

A handler gets the context, the call and the checked request; its docstring says what the reply guarantees. Modules that
many daemons never need are imported with the first call of one of their handlers: all of them would take a tenth of the
start of a daemon.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from holdfast.daemon.core.context import Call, DaemonContext, Handler, Message
from holdfast.daemon.handlers import (
    control,
    daemon,
    inbox,
    listing,
    logs,
    send,
    start,
    wait,
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


def _later(module: str, name: str) -> Handler:
    """The handler of a module that is imported with the first call."""

    async def handle(context: DaemonContext, call: Call, ask: Any) -> Message:
        handler: Handler = getattr(import_module(f"{__name__}.{module}"), name)
        return await handler(context, call, ask)

    return handle


HANDLERS: dict[type[Operation], Handler] = {
    Start: start.handle,
    Foreground: _later("foreground", "handle"),
    Exec: start.handle_exec,
    process_ops.List: listing.list_processes,
    process_ops.Inspect: listing.inspect,
    process_ops.Why: _later("why", "handle"),
    process_ops.Counts: listing.counts,
    process_ops.Top: listing.top,
    process_ops.Glance: listing.glance,
    process_ops.ProcessEvents: _later("events", "of_process"),
    process_ops.Wait: wait.handle,
    process_ops.Kill: control.kill,
    process_ops.Send: send.handle,
    process_ops.Resize: _later("terminal", "resize"),
    process_ops.Restart: control.restart,
    process_ops.ShowScreen: _later("terminal", "screen"),
    process_ops.Attached: _later("terminal", "attached"),
    process_ops.Remove: control.remove,
    process_ops.Transfer: control.transfer,
    project_ops.ControlProject: _later("projects", "control"),
    queue_ops.Queues: _later("queues", "handle"),
    queue_ops.SetQueue: _later("queues", "change"),
    queue_ops.RemoveQueue: _later("queues", "remove"),
    backend_ops.Backends: _later("backends", "handle"),
    backend_ops.CleanBackends: _later("backends", "clean"),
    backend_ops.StopBackend: _later("backends", "stop"),
    backend_ops.BackendLogin: _later("backends", "login"),
    output_ops.Logs: logs.handle,
    output_ops.LogTimes: logs.times,
    output_ops.Search: _later("search", "handle"),
    file_ops.PutFile: _later("files", "put"),
    file_ops.GetFile: _later("files", "get"),
    session_ops.Sessions: _later("sessions", "sessions"),
    session_ops.EndSession: _later("sessions", "end_session"),
    session_ops.RenameSession: _later("sessions", "rename_session"),
    session_ops.Digest: _later("sessions", "digest"),
    session_ops.Inbox: inbox.handle,
    session_ops.Notices: inbox.follow,
    session_ops.Ack: inbox.ack,
    agent_ops.Agents: _later("agents", "list_agents"),
    agent_ops.AgentLog: _later("agents", "read_log"),
    agent_ops.AgentStart: _later("agents", "start_agent"),
    agent_ops.AgentSend: _later("agents", "send"),
    agent_ops.AgentSettings: _later("agents", "change_settings"),
    agent_ops.AgentControl: _later("agents", "control"),
    event_ops.Events: _later("events", "handle"),
    event_ops.Publish: _later("events", "publish"),
    approval_ops.Approvals: _later("approvals", "handle"),
    approval_ops.RequestApproval: _later("approvals", "request"),
    approval_ops.Approve: _later("approvals", "approve"),
    approval_ops.Deny: _later("approvals", "deny"),
    approval_ops.ApprovalShown: _later("approvals", "shown"),
    approval_ops.ApprovalPassword: _later("approvals", "password"),
    approval_ops.Askpass: _later("askpass", "handle"),
    approval_ops.Judge: _later("approvals", "judge"),
    approval_ops.Audit: _later("approvals", "audit"),
    daemon_ops.Status: daemon.status,
    daemon_ops.Doctor: _later("doctor", "handle"),
    daemon_ops.Http: daemon.http,
    daemon_ops.Dashboard: daemon.dashboard,
    dashboard_ops.Plugins: _later("extensions", "list_plugins"),
    dashboard_ops.SetPlugin: _later("extensions", "set_plugin"),
    dashboard_ops.Themes: _later("extensions", "list_themes"),
    daemon_ops.Stop: daemon.stop,
    daemon_ops.Redact: daemon.redact,
    daemon_ops.ShowSettings: daemon.show_settings,
    daemon_ops.Sinks: _later("sinks", "handle"),
    daemon_ops.SinkTest: _later("sinks", "test"),
    daemon_ops.SinkDead: _later("sinks", "dead"),
    daemon_ops.SinkRetry: _later("sinks", "retry"),
}
