"""The handlers of all operations, and the table that assigns them. A reply means that it has happened.

A handler gets the context, the call and the checked request; its docstring says what the reply guarantees. Modules that
many daemons do not need soon are imported with the first call of one of their handlers, or when the daemon has served
for a while: an upgrade may replace their files later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
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

#: After the start, which clients wait for.
_IMPORT_DELAY = 15.0
#: Imported within functions of other modules of the daemon.
_ALSO_LATER = ("holdfast.daemon.probes.log", "holdfast.model.notices.notice_texts", "holdfast.secrets.redact")


class Later:
    """The handler of a module that is imported with the first call."""

    def __init__(self, module: str, name: str) -> None:
        self._where = f"{__name__}.{module}", name

    def load(self) -> Handler:
        module, name = self._where
        handler: Handler = getattr(import_module(module), name)
        return handler

    def __call__(self, context: DaemonContext, call: Call, ask: Any) -> Awaitable[Message]:
        return self.load()(context, call, ask)


HANDLERS: dict[type[Operation], Handler] = {
    Start: start.handle,
    Foreground: Later("foreground", "handle"),
    Exec: start.handle_exec,
    process_ops.List: listing.list_processes,
    process_ops.Inspect: listing.inspect,
    process_ops.Why: Later("why", "handle"),
    process_ops.Counts: listing.counts,
    process_ops.Top: listing.top,
    process_ops.Glance: listing.glance,
    process_ops.ProcessEvents: Later("events", "of_process"),
    process_ops.Wait: wait.handle,
    process_ops.Kill: control.kill,
    process_ops.Send: send.handle,
    process_ops.Resize: Later("terminal", "resize"),
    process_ops.Restart: control.restart,
    process_ops.ShowScreen: Later("terminal", "screen"),
    process_ops.Attached: Later("terminal", "attached"),
    process_ops.Remove: control.remove,
    process_ops.Transfer: control.transfer,
    project_ops.ControlProject: Later("projects", "control"),
    queue_ops.Queues: Later("queues", "handle"),
    queue_ops.SetQueue: Later("queues", "change"),
    queue_ops.RemoveQueue: Later("queues", "remove"),
    backend_ops.Backends: Later("backends", "handle"),
    backend_ops.CleanBackends: Later("backends", "clean"),
    backend_ops.StopBackend: Later("backends", "stop"),
    backend_ops.BackendLogin: Later("backends", "login"),
    output_ops.Logs: logs.handle,
    output_ops.LogTimes: logs.times,
    output_ops.Search: Later("search", "handle"),
    file_ops.PutFile: Later("files", "put"),
    file_ops.GetFile: Later("files", "get"),
    session_ops.Sessions: Later("sessions", "sessions"),
    session_ops.EndSession: Later("sessions", "end_session"),
    session_ops.RenameSession: Later("sessions", "rename_session"),
    session_ops.Digest: Later("sessions", "digest"),
    session_ops.Inbox: inbox.handle,
    session_ops.Notices: inbox.follow,
    session_ops.Ack: inbox.ack,
    agent_ops.Agents: Later("agents", "list_agents"),
    agent_ops.AgentLog: Later("agents", "read_log"),
    agent_ops.AgentStart: Later("agents", "start_agent"),
    agent_ops.AgentSend: Later("agents", "send"),
    agent_ops.AgentSettings: Later("agents", "change_settings"),
    agent_ops.AgentControl: Later("agents", "control"),
    event_ops.Events: Later("events", "handle"),
    event_ops.Publish: Later("events", "publish"),
    approval_ops.Approvals: Later("approvals", "handle"),
    approval_ops.RequestApproval: Later("approvals", "request"),
    approval_ops.Approve: Later("approvals", "approve"),
    approval_ops.Deny: Later("approvals", "deny"),
    approval_ops.ApprovalShown: Later("approvals", "shown"),
    approval_ops.ApprovalPassword: Later("approvals", "password"),
    approval_ops.Askpass: Later("askpass", "handle"),
    approval_ops.Judge: Later("approvals", "judge"),
    approval_ops.Audit: Later("approvals", "audit"),
    daemon_ops.Status: daemon.status,
    daemon_ops.Doctor: Later("doctor", "handle"),
    daemon_ops.Http: daemon.http,
    daemon_ops.Dashboard: daemon.dashboard,
    dashboard_ops.Plugins: Later("extensions", "list_plugins"),
    dashboard_ops.SetPlugin: Later("extensions", "set_plugin"),
    dashboard_ops.Themes: Later("extensions", "list_themes"),
    daemon_ops.Stop: daemon.stop,
    daemon_ops.Redact: daemon.redact,
    daemon_ops.ShowSettings: daemon.show_settings,
    daemon_ops.Sinks: Later("sinks", "handle"),
    daemon_ops.SinkTest: Later("sinks", "test"),
    daemon_ops.SinkDead: Later("sinks", "dead"),
    daemon_ops.SinkRetry: Later("sinks", "retry"),
}


async def import_rest() -> None:
    """Import what is still to be imported, a module at a time: meanwhile clients are served."""
    await asyncio.sleep(_IMPORT_DELAY)
    for name in _ALSO_LATER:
        import_module(name)
        await asyncio.sleep(0)
    for handler in HANDLERS.values():
        if isinstance(handler, Later):
            handler.load()
            await asyncio.sleep(0)
