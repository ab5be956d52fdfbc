"""The composition root: the daemon from start to stop, in the order in which it happens."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.daemon.approvals import commands
from holdfast.daemon.approvals.audit import AuditLog
from holdfast.daemon.approvals.commands import Gate
from holdfast.daemon.approvals.input_readers import Readers
from holdfast.daemon.approvals.passwords import Passwords
from holdfast.daemon.approvals.requests import ApprovalRequests
from holdfast.daemon.core import boot, service_manager, timers
from holdfast.daemon.core.context import DaemonContext, Message
from holdfast.daemon.core.home_watcher import watch_home
from holdfast.daemon.core.log import note
from holdfast.daemon.core.places import Places
from holdfast.daemon.core.queues import ProcessQueues, end_after_boot, watch_queues
from holdfast.daemon.core.recovery import Recovery
from holdfast.daemon.core.registry import Registry
from holdfast.daemon.core.supervisor import Supervisor
from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.daemon.handlers import import_rest
from holdfast.daemon.handlers.daemon import end_processes
from holdfast.daemon.hooks.follow import Hooks
from holdfast.daemon.listener.accepting import CallerAncestry
from holdfast.daemon.listener.bridges import Bridges
from holdfast.daemon.listener.page_access import PageAccess
from holdfast.daemon.listener.server import Server
from holdfast.daemon.listener.tcp import TcpListener, TlsListener
from holdfast.daemon.notices.event_stream import EventStream
from holdfast.daemon.notices.inbox import SessionInboxes, is_awaited
from holdfast.daemon.notices.progress import publish_output, watch_progress
from holdfast.daemon.notices.sessions import Names, SessionOwnership
from holdfast.daemon.probes.begin import begin as begin_probes
from holdfast.daemon.start.environment import KnownSecrets
from holdfast.daemon.start.stop_commands import StopCommands
from holdfast.daemon.start.sudo import SudoHelper
from holdfast.daemon.streams.inputs import Inputs
from holdfast.daemon.streams.outputs import Outputs
from holdfast.daemon.workers.match_events import NAME as BREAKER
from holdfast.daemon.workers.match_events import MatchEvents
from holdfast.daemon.workers.mcp import McpWorker
from holdfast.daemon.workers.plugins import PluginRouters
from holdfast.daemon.workers.screen import ScreenWorker
from holdfast.daemon.workers.screens import ProcessScreens
from holdfast.daemon.workers.sink_messages import message_maker
from holdfast.daemon.workers.sinks import SinkManager
from holdfast.daemon.workers.watch import WatchWorker
from holdfast.daemon.workers.watches import OutputWatches
from holdfast.dashboard.plugins import DashboardPlugins
from holdfast.dashboard.themes import DashboardThemes
from holdfast.errors import HoldfastError, Unreachable
from holdfast.model.events import Event
from holdfast.paths import Paths, find_paths
from holdfast.places.keeper_link import Refused
from holdfast.places.local import LocalPlace
from holdfast.secrets.environment import for_backends, minimal
from holdfast.settings import Settings
from holdfast.store import approvals as approval_rows
from holdfast.store import queues as queue_rows
from holdfast.store import rows as inbox_rows
from holdfast.store.audit import SET_ASIDE
from holdfast.store.replies import ReplyRecord
from holdfast.store.store import open_store
from holdfast.version import VERSION
from holdfast_keeper import protocol

#: Longer than a keeper takes to start and to read a thousand bundles. After that the daemon serves without it.
_RECOVERY_TIMEOUT = 15.0
#: How long a new release of the keeper may take until it answers. After that the daemon serves without it.
_RENEW_TIMEOUT = 10.0
#: Clients that waited for a reply when the daemon died may come back, or confirm the reply, within this time.
_RECONNECT_TIMEOUT = 10.0
#: Under this key the store remembers whether the last daemon was stopped on purpose.
_DAEMON = "daemon"


def _hidden(paths: Paths) -> list[str]:
    """Directories of this instance, and of the one that a command without HOLDFAST_HOME would use."""
    usual = find_paths({name: value for name, value in os.environ.items() if name != "HOLDFAST_HOME"})
    return [paths.home, paths.runtime, usual.home, usual.runtime]


async def run(paths: Paths, settings: Settings, ready: Callable[[], None]) -> None:
    """Run the daemon of this instance until it is asked to stop. The caller holds the lock of the instance."""
    note("daemon-start", version=VERSION, pid=os.getpid(), home=paths.home)
    context, recovery, watches, memory, set_aside = await _compose(paths, settings)
    is_after_crash, last_boot = memory.get(_DAEMON) == {"stopped": False}, memory.get(boot.BOOT)
    context.store.change_soon(lambda connection: inbox_rows.remember(connection, _DAEMON, {"stopped": False}))
    context.store.record_soon([_event("start")])
    if set_aside is not None:
        context.audit.note_soon(SET_ASIDE, to=set_aside)
    server = Server(context)
    _stop_on_signals(context)

    def on_hello(hello: Message) -> None:
        context.place.fd_store.hurry()
        recovery.on_hello(hello)

    try:
        context.background.start(context.place.login.refresh(), "login environment")
        context.background.start(context.secrets.relearn(context.places.all(), context.registry.owner), "secrets")
        vital = [
            context.background.start(
                context.keeper.run(on_hello, partial(context.supervisor.apply_fact, None)), "keeper"
            ),
            context.background.start(context.place.fd_store.run(), "fd store"),
        ]
        await context.places.reopen()
        # Clients are served when the true state of the processes is known, not before.
        await recovery.complete(_RECOVERY_TIMEOUT)
        if is_after_crash:
            context.store.record_soon([_event("recovered", running=len(context.registry.active()))])
        await _renew_keeper(context)
        same_boot = last_boot in (None, context.place.boot_id)
        await context.queues.settle(same_boot)
        if not same_boot:
            await end_after_boot(context)
        await boot.plan(context, last_boot)
        context.approvals.settle(partial(commands.was_used, context))
        vital.append(context.background.start(context.approvals.watch_time(), "approvals"))
        vital.append(context.background.start(timers.watch_deadlines(context), "deadlines"))
        vital.append(context.background.start(timers.watch_restarts(context), "restarts"))
        vital.append(context.background.start(watch_queues(context), "queues"))
        vital.append(context.background.start(timers.forget_old(context), "retention"))
        environ = {**minimal(os.environ), "HOLDFAST_HOME": paths.home}
        hooks = Hooks(paths.hooks, paths.hook_places, context.stream, environ)
        context.background.start(hooks.watch(), "hooks")
        await context.screens.take_over(list(context.registry.all.values()))
        begin_probes(context)
        watches.begin()
        context.background.start(watch_progress(context), "progress")
        context.background.start(publish_output(context), "output events")
        context.background.start(context.place.usage.run(), "sampler")
        context.background.start(context.places.watch_idle(), "idle places")
        context.sinks.start(message_maker(context))
        await server.open()
        context.background.start(context.inbox.release_earlier(_RECONNECT_TIMEOUT), "claims")
        vital.append(context.background.start(watch_home(context, server), "home"))
        context.background.start(import_rest(), "modules")
        gc.freeze()  # objects of the start stay for ever: the collector need not scan them
        gc.enable()
        ready()
        await _until_stopped(context, vital)
    finally:
        service_manager.send_state("STOPPING=1")
        watches.close()
        await _stop(context, server)
        note("daemon-end")


async def _renew_keeper(context: DaemonContext) -> None:
    """After an upgrade. A keeper that cannot be replaced still serves."""
    try:
        async with asyncio.timeout(_RENEW_TIMEOUT):
            await context.place.renew_keeper()
    except (OSError, Refused, Unreachable, TimeoutError) as failed:
        note("keeper-not-renewed", why=repr(failed))


async def _until_stopped(context: DaemonContext, vital: list[asyncio.Task[Any]]) -> None:
    """Until the daemon is asked to stop. It cannot go on without one of the vital tasks: raises what that raised."""
    asked = context.background.start(context.stop_asked.wait(), "stop")
    done, _ = await asyncio.wait({asked, *vital}, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


async def _compose(
    paths: Paths, settings: Settings
) -> tuple[DaemonContext, Recovery, OutputWatches, dict[str, Any], str | None]:
    """The parts, each given what it needs; what the last daemon remembered; and where a damaged store was moved to.

    Raises StoreTooNew, OSError or sqlite3.Error; no task is running then.
    """
    file_limit = _raise_file_limit()
    environ = minimal(os.environ)
    opened = await open_store(paths.store, lambda message: note("store-trouble", why=message))
    if opened.set_aside is not None:
        note("store-set-aside", to=opened.set_aside)
    registry, background = Registry(), BackgroundTasks()
    for process in opened.found:
        registry.put(process)
    place = LocalPlace(
        paths.place,
        environ,
        hello=_hello(settings),
        note=note,
        running=registry.active,
        login_file=paths.login_env,
        file_limit=file_limit,
        daemon_environ=for_backends(os.environ),
        hidden=_hidden(paths),
    )
    places = Places(
        place,
        paths.home,
        settings.backends,
        {**environ, **for_backends(os.environ)},
        _hello(settings),
        registry,
        opened.store,
        background,
    )
    outputs, inputs = Outputs(places.keeper_of), Inputs(places.keeper_of)
    screen_worker = ScreenWorker(place.directory, places.directory_of, paths.screens, environ)
    tcp = TcpListener(paths, settings.http_listen)
    names = Names(opened.kept.aliases, opened.found, time.time())
    stream = EventStream(opened.store)
    inbox = SessionInboxes(opened.store, ReplyRecord(paths.replies), opened.kept.pending, names.resolve, registry.owner)
    opened.store.on_events.append(inbox.arrived)
    is_urgent = partial(is_awaited, inbox, stream, opened.store)
    supervisor = places.supervisor = Supervisor(
        registry, opened.store, background, places.tracks_of, inbox.claimed, names.begins, places.measured, is_urgent
    )
    sessions = SessionOwnership(names, registry, inbox, opened.store, supervisor.turn)
    asked = await opened.store.read(approval_rows.load)
    approvals = ApprovalRequests(opened.store, asked, settings.approval_keep)
    sessions.on_rename.append(approvals.renamed)
    ancestry = CallerAncestry(registry, place)
    secrets = KnownSecrets(settings, lambda: (tcp.token, tcp.publish_token), names.resolve)
    sessions.on_transfer.append(partial(secrets.transferred, places.of_id))
    context = DaemonContext(
        paths=paths,
        settings=settings,
        registry=registry,
        store=opened.store,
        stream=stream,
        inbox=inbox,
        gate=Gate(paths.home),
        approvals=approvals,
        audit=AuditLog(opened.store),
        ancestry=ancestry,
        passwords=Passwords(settings.sudo_password_command, settings.sudo_keep),
        sudo=SudoHelper(paths.home),
        input_readers=Readers(await opened.store.read(approval_rows.load_typed), registry),
        sessions=sessions,
        sinks=SinkManager(settings.sinks, paths.config, opened.store, background, environ),
        bridges=Bridges(opened.store),
        places=places,
        supervisor=supervisor,
        queues=ProcessQueues(opened.store, registry, await opened.store.read(queue_rows.load)),
        stop_commands=StopCommands(lambda process: places.get(process.meta.place), settings, background, ancestry),
        outputs=outputs,
        inputs=inputs,
        screens=ProcessScreens(
            paths.screens, screen_worker, places.keeper_of, outputs, inputs, background, place.readers
        ),
        secrets=secrets,
        tcp=tcp,
        tls=TlsListener(paths, tcp),
        pages=PageAccess(paths.dashboard_access),
        mcp=McpWorker(environ),
        plugins=DashboardPlugins(paths.dashboard),
        themes=DashboardThemes(paths.dashboard),
        plugin_routers=PluginRouters(environ, settings.plugin_timeout),
        watch_worker=WatchWorker(place.directory, places.directory_of, environ),
        background=background,
    )
    match_events = MatchEvents(opened.kept.memory.get(BREAKER), settings, registry.get)
    watches = OutputWatches(context, match_events)
    recovery = Recovery(place, registry, supervisor, background)
    return context, recovery, watches, opened.kept.memory, opened.set_aside


def _event(what: str, **more: int) -> Event:
    return Event(f"daemon.{what}", time.time(), {"version": VERSION, "pid": os.getpid(), **more})


def _hello(settings: Settings) -> Message:
    revive = [sys.executable, "-P", "-m", "holdfast.daemon", "--revived"]
    return {"version": protocol.VERSION, "log_total": settings.log_total or None, "revive": revive}


def _raise_file_limit() -> int:
    """Raise the limit of open files as far as the system allows; the old limit, which commands get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft


def _stop_on_signals(context: DaemonContext) -> None:
    """SIGTERM and SIGINT do what the operation `stop` does; a second signal does not wait for it."""

    async def stop() -> None:
        try:
            await end_processes(context)
        finally:
            context.stop_asked.set()

    def on_signal(number: int) -> None:
        note("signal", number=number)
        if is_stopping.is_set():
            context.stop_asked.set()
        else:
            is_stopping.set()
            context.background.start(stop(), "stop")

    is_stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


async def _stop(context: DaemonContext, server: Server) -> None:
    # Clients first: no new requests come in. Their requests for approval are not withdrawn by that.
    context.approvals.is_leaving = True
    await server.close()
    # A keeper that the daemon does not take leave of starts it again.
    if context.stop_asked.is_set():
        with contextlib.suppress(HoldfastError):  # on a full disk the event is left out
            await context.store.change(
                lambda connection: inbox_rows.remember(connection, _DAEMON, {"stopped": True}),
                [_event("stop", running=len(context.registry.active()))],
            )
        await context.places.leave()
    # Messages that are being sent may end, so that none is sent twice.
    await context.sinks.close()
    context.mcp.close()
    context.plugin_routers.close()
    # Then all other tasks, and with them the connections to the keeper.
    await context.background.close()
    # The store last: all of the others write to it.
    await context.store.close()
    context.screens.close()
    context.places.close()
