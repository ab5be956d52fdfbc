"""The context of a handler: the parts of the running daemon, and the call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.daemon.approvals.audit import AuditLog
from holdfast.daemon.approvals.input_readers import Readers
from holdfast.daemon.approvals.passwords import Passwords
from holdfast.daemon.approvals.requests import ApprovalRequests
from holdfast.daemon.core.places import Places
from holdfast.daemon.core.queues import ProcessQueues
from holdfast.daemon.core.registry import ProcessClients, ProcessObject, Registry, process_object
from holdfast.daemon.core.supervisor import Supervisor
from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.daemon.listener.accepting import BoundOrigin, CallerAncestry
from holdfast.daemon.listener.bridges import Bridges
from holdfast.daemon.listener.page_access import PageAccess
from holdfast.daemon.listener.tcp import TcpListener, TlsListener
from holdfast.daemon.notices.event_stream import EventStream
from holdfast.daemon.notices.inbox import SessionInboxes
from holdfast.daemon.notices.sessions import SessionOwnership
from holdfast.daemon.start.environment import KnownSecrets
from holdfast.daemon.start.stop_commands import StopCommands
from holdfast.daemon.start.sudo import SudoHelper
from holdfast.daemon.streams.inputs import Inputs
from holdfast.daemon.streams.outputs import Outputs
from holdfast.daemon.workers.mcp import McpWorker
from holdfast.daemon.workers.plugins import PluginRouters
from holdfast.daemon.workers.screens import ProcessScreens
from holdfast.daemon.workers.sinks import SinkManager
from holdfast.daemon.workers.watch import WatchWorker
from holdfast.dashboard.plugins import DashboardPlugins
from holdfast.dashboard.themes import DashboardThemes
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.paths import Paths
from holdfast.places.base import ExecutionPlace, Measures
from holdfast.places.keeper_link import KeeperLink
from holdfast.records import Struct, field
from holdfast.settings import Settings
from holdfast.store.store import Store

if TYPE_CHECKING:
    from holdfast.daemon.approvals.commands import Gate

T = TypeVar("T")

Message = dict[str, Any]

_SHOWN_AT_ONCE = 200


class DaemonContext(Struct, frozen=True):
    paths: Paths
    settings: Settings
    registry: Registry
    store: Store
    stream: EventStream
    inbox: SessionInboxes
    sessions: SessionOwnership
    gate: Gate
    approvals: ApprovalRequests
    audit: AuditLog
    input_readers: Readers
    ancestry: CallerAncestry
    passwords: Passwords
    sudo: SudoHelper
    sinks: SinkManager
    bridges: Bridges
    places: Places
    supervisor: Supervisor
    queues: ProcessQueues
    outputs: Outputs
    inputs: Inputs
    stop_commands: StopCommands
    screens: ProcessScreens
    secrets: KnownSecrets
    tcp: TcpListener
    tls: TlsListener
    pages: PageAccess
    mcp: McpWorker
    plugins: DashboardPlugins
    themes: DashboardThemes
    plugin_routers: PluginRouters
    watch_worker: WatchWorker
    background: BackgroundTasks
    clients: ProcessClients = field(default_factory=ProcessClients)
    started_at: float = field(default_factory=time.time)
    stop_asked: asyncio.Event = field(default_factory=asyncio.Event)
    deadlines_changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def place(self) -> ExecutionPlace:
        """This machine."""
        return self.places.local

    @property
    def keeper(self) -> KeeperLink:
        """That of this machine."""
        return self.places.local.keeper

    def place_of(self, process: HeldProcess) -> ExecutionPlace:
        """Where it runs."""
        return self.places.get(process.meta.place)

    def keeper_of(self, process: HeldProcess) -> KeeperLink:
        return self.places.get(process.meta.place).keeper

    def current_name(self, session: str | None) -> str | None:
        """The current name of a session; None for None."""
        return self.sessions.resolve(session) if session is not None else None

    def show(self, process: HeldProcess) -> ProcessObject:
        """The process object with the figures that are known without measuring."""
        return self._object(process, None)

    async def show_fresh(self, processes: list[HeldProcess], used: float | None = None) -> list[ProcessObject]:
        """Process objects with figures measured now, for those whose figures may have changed.

        `used`: also their resource usage, at most this many seconds old.
        """
        if used is not None:
            by_place = self.places.grouped(processes)
            await asyncio.gather(*(place.usage.fresh(held, used) for place, held in by_place))
        measured = await self.sizes([process for process in processes if not process.output_closed])
        shown = []
        for process in processes:
            shown.append(self._object(process, measured.get(process.id)))
            if len(shown) % _SHOWN_AT_ONCE == 0:
                await asyncio.sleep(0)  # a long list must not delay other callers
        return shown

    async def sizes(self, processes: list[HeldProcess]) -> dict[ProcessId, Measures]:
        """How much output these processes have, and which leftovers live. On a disk that hangs, some are missing."""
        by_place = self.places.grouped(processes)
        if len(by_place) == 1:
            return await by_place[0][0].sizes(by_place[0][1])
        found = await asyncio.gather(*(place.sizes(held) for place, held in by_place))
        return {process_id: measures for measured in found for process_id, measures in measured.items()}

    def read(self, work: Callable[..., T], *arguments: object) -> Coroutine[Any, Any, T]:
        """Run a function that reads log files in a thread. When this returns or raises, the function has ended."""
        return self.place.read(work, *arguments)

    def _object(self, process: HeldProcess, measures: Measures | None) -> ProcessObject:
        now, place = time.time(), self.place_of(process)
        if measures is None:
            measures = Measures(process.streams, place.living(process.leftovers) if process.leftovers else [])
        used = place.usage.tracks.get(process.id) if process.is_active else None
        shown = process_object(process, now, self.settings.stale_after, place.keeper.is_reachable, measures, used)
        return {**shown, "attached": self.clients.attached_to(process.id)}


class Call:
    """One request of one client, while it is under way."""

    __slots__ = (
        "session",
        "claimed",
        "client",
        "is_strict",
        "is_bound",
        "is_gated",
        "pid",
        "taker",
        "consumed",
        "given_up",
        "send",
        "receive",
    )

    def __init__(
        self,
        session: str | None,
        send_data: Callable[[str, int, bytes], Awaitable[None]],
        taker: object = None,
        is_strict: bool = False,
        origin: BoundOrigin | None = None,
        pid: int | None = None,
        claimed: str | None = None,
        receive_data: Callable[[], Awaitable[bytes]] | None = None,
        client: str | None = None,
    ) -> None:
        #: What the client is called where it speaks for no session: `dashboard`.
        self.client = client
        #: The session that the client speaks for.
        self.session = session
        #: The session that a bound client said it speaks for: to the client, a name of its own session.
        self.claimed = claimed
        #: Whether it comes from within a held process, or cannot be traced: it approves nothing.
        self.is_bound = origin is not None
        #: Whether it is bound to its session: processes of other sessions do not exist for it.
        self.is_strict = is_strict or self.is_bound
        #: Whether what it starts is judged: it comes from within a command that was judged, or may do so.
        self.is_gated = origin is not None and origin.is_judged
        #: The process that made the connection; None where the kernel does not know it.
        self.pid = pid
        #: Set when the client does not wait for the reply any more. Operations that complete may check it.
        self.given_up = asyncio.Event()
        #: Holds the notices that this call takes out of the inbox: its connection.
        self.taker = taker
        #: Notices whose content is in the reply: they count as delivered when the client has confirmed it.
        self.consumed: list[str] = []
        #: Sends some output to the client: stream, offset, data. Returns when the client has read most of it.
        self.send = send_data
        #: The next bytes that the client uploads; empty at their end. For operations that upload.
        self.receive = receive_data or _nothing_uploaded

    @property
    def owner(self) -> str:
        """The session whose processes are the caller's own."""
        return self.session or "default"

    @property
    def by(self) -> str:
        """The name of the caller in events and in the audit log."""
        return self.client or self.owner

    def ended_by(self, session: str) -> str | None:
        """The name to record as `by` when the caller ends a process of this session.

        None for a page of the dashboard where the session itself is called `dashboard`: it would count as the one that
        ended the process, and would not be notified.
        """
        return self.session if self.client in (None, session) else self.client

    def sees(self, session: str) -> bool:
        """Whether the caller may see what belongs to this session."""
        return not self.is_strict or session == self.owner


async def _nothing_uploaded() -> bytes:
    return b""


#: Called with the checked request of its operation.
Handler = Callable[[DaemonContext, Call, Any], Awaitable[Message]]
