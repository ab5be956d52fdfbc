"""What runs, kept up to date by events: loaded once, then each process that an event is about is asked for again.

The reader of events goes on behind the last one after a cut, so that nothing is missing and nothing comes twice.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from holdfast.client.aio import AsyncClient
from holdfast.client.aio_link import AsyncLink
from holdfast.client.process import Process
from holdfast.client.results.approval import Approval
from holdfast.errors import HoldfastError, NotFound
from holdfast.tui.processes.rows import ended_ids
from holdfast.tui.states import NEEDS_USER, state_of

_TOPICS = (
    "process.* approval.* session.* notification.* place.* daemon.* "
    "agent.start agent.step agent.end tool.* tui.** events.gap"
)
#: Changes within this time are asked for together.
_GATHER = 0.03
#: From this many processes on, the whole list is asked for.
_MANY = 12
_PAUSE = 1.0
#: A connection that is there sooner was never missing.
_LATE = 0.2
#: The end of a question or of a stall is no event: processes in these states are looked at again.
_RECHECK = 2.0


class LiveClient(AsyncClient):
    """A client that says whether it is connected: after a cut it comes back by itself."""

    def __init__(self, on_link: Callable[[bool], None]) -> None:
        super().__init__()
        self._on_link = on_link

    async def _open(self, resume: float | None = None) -> AsyncLink:
        late = asyncio.get_running_loop().call_later(_LATE, self._on_link, False)
        try:
            link = await super()._open(resume)
        finally:
            late.cancel()
        self._on_link(True)
        return link

    @property
    def is_remote(self) -> bool:
        """Whether the daemon is on another machine, where this one does not see the files."""
        return self._address is not None


class LiveFeed:
    """`on_change` is called when processes, approvals or inboxes differ; `on_event` with each event."""

    def __init__(self, on_change: Callable[[], None], on_event: Callable[[dict[str, Any]], None]) -> None:
        self._on_change = on_change
        self._on_event = on_event
        self.client = LiveClient(self._note_link)
        self.processes: dict[str, Process] = {}
        self.approvals: dict[str, Approval] = {}
        #: Pending notifications by session.
        self.pending: Counter[str] = Counter()
        self.is_connected = False
        self.is_loaded = False
        #: Processes that had ended when a list was opened: they are below all others.
        self.over: frozenset[str] = frozenset()
        #: Why nothing can be shown.
        self.trouble = ""
        self._dirty: set[str] = set()
        self._must_reload = False
        self._has_dirty = asyncio.Event()
        self._shown: set[str] = set()

    def begin_with(self, found: list[Process]) -> None:
        """What was read before it runs."""
        self.processes = {process.id: process for process in found}
        self.settle()
        self.is_connected = True

    def settle(self) -> None:
        """A list is opened: what has ended moves below what runs."""
        self.over = ended_ids(self.processes.values())

    async def run(self) -> None:
        """Until it is cancelled."""
        works = (self._follow(), self._refresh(), self._follow_approvals(), self._recheck())
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)

    def _note_link(self, is_there: bool) -> None:
        if is_there != self.is_connected:
            self.is_connected = is_there
            if is_there and self.is_loaded:
                self.reload()
            self._on_change()

    def reload(self) -> None:
        """Ask for everything again."""
        self._must_reload = True
        self._has_dirty.set()

    def touch(self, process: str) -> None:
        """Ask for one process again."""
        self._dirty.add(process)
        self._has_dirty.set()

    # Loading.

    async def _follow(self) -> None:
        since: int | None = None
        while True:
            try:
                if since is None:
                    since = int((await self.client.status())["events"])
                    await self._load()
                async with self.client.events(_TOPICS, since=since, follow=True) as events:
                    async for event in events:
                        since = event.get("seq", since)
                        self._take(event)
            except HoldfastError as failed:
                self.trouble = f"{failed.message}. Next: {failed.next}" if failed.next else failed.message
                self._on_change()
                await asyncio.sleep(_PAUSE)

    async def _load(self) -> None:
        found = await self.client.ps(all=True, used=False)
        sessions = await self.client.sessions()
        self.processes = {process.id: process for process in found}
        self.pending = Counter({str(one["session"]): int(one["pending"]) for one in sessions})
        if not self.is_loaded:
            self.settle()
        self.is_loaded, self.trouble = True, ""
        self._on_change()

    async def _refresh(self) -> None:
        while True:
            await self._has_dirty.wait()
            await asyncio.sleep(_GATHER)
            self._has_dirty.clear()
            dirty, self._dirty = self._dirty, set()
            is_all, self._must_reload = self._must_reload or len(dirty) > _MANY, False
            try:
                if is_all:
                    await self._load()
                else:
                    await asyncio.gather(*(self._ask(process) for process in dirty))
                    self._on_change()
            except HoldfastError:
                await asyncio.sleep(_PAUSE)
                self._dirty |= dirty
                self._must_reload = self._must_reload or is_all
                self._has_dirty.set()

    async def _ask(self, process: str) -> None:
        try:
            self.processes[process] = await self.client.inspect(process)
        except NotFound:
            self.processes.pop(process, None)

    async def _recheck(self) -> None:
        while True:
            await asyncio.sleep(_RECHECK)
            for process in list(self.processes.values()):
                if process.status != "ended" and state_of(process).key in NEEDS_USER:
                    self.touch(process.id)

    # Events.

    def _take(self, event: dict[str, Any]) -> None:
        topic, process = str(event.get("type")), event.get("id")
        if topic == "process.output":
            self._note_output(event)
        elif topic.startswith("process.") and isinstance(process, str):
            self.touch(process)
        elif topic == "notification.queued":
            self.pending[str(event.get("session"))] += 1
        elif topic == "notification.acked":
            session = str(event.get("session"))
            self.pending[session] = max(0, self.pending[session] - 1)
        elif topic in ("events.gap", "session.rename", "session.end") or topic.startswith(("place.", "daemon.")):
            self.reload()
        self._on_event(event)
        if topic.startswith("notification."):
            self._on_change()

    def _note_output(self, event: dict[str, Any]) -> None:
        """Output is no change of state, unless the process waited for something."""
        known = self.processes.get(str(event.get("id")))
        if known is not None and state_of(known).key in NEEDS_USER:
            self.touch(known.id)

    # Approvals.

    async def _follow_approvals(self) -> None:
        while True:
            try:
                self.approvals = {one.id: one for one in await self.client.approvals() if one.state == "pending"}
                self._on_change()
                async with self.client.follow_approvals() as changed:
                    async for approval in changed:
                        if approval.state == "pending":
                            self.approvals[approval.id] = approval
                        else:
                            self.approvals.pop(approval.id, None)
                        self._on_change()
            except HoldfastError:
                await asyncio.sleep(_PAUSE)

    async def note_shown(self, approvals: list[Approval]) -> None:
        """Requests are in view: their callers wait for the answer."""
        for approval in approvals:
            if approval.id not in self._shown:
                self._shown.add(approval.id)
                try:
                    await self.client.approval_shown(approval)
                except HoldfastError:
                    self._shown.discard(approval.id)

    def drop_expired(self) -> None:
        """Requests whose time is over."""
        now = time.time()
        for approval in list(self.approvals.values()):
            if approval.expires_at is not None and approval.expires_at < now - 1:
                self.approvals.pop(approval.id, None)
