"""The tabs of sessions: which there are, what each shows while it is not in view, and which are in view."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.segment import Segment

from holdfast.client.process import Process
from holdfast.model.agents import is_session
from holdfast.model.units import age_text
from holdfast.tui import paint
from holdfast.tui.header import Tab
from holdfast.tui.overviews import OverviewScreen
from holdfast.tui.processes.rows import AGENTS
from holdfast.tui.processes.view import ProcessesView
from holdfast.tui.sessions.book import SessionBook, SessionInfo
from holdfast.tui.states import NEEDS_USER, is_recent_failure, state_of

if TYPE_CHECKING:
    from holdfast.tui.app import HoldfastApp
    from holdfast.tui.sessions.view import SessionView

SESSION_KEYS = "enter send · ^J line · ^C interrupt · tab focus · ^O sessions · ^K commands"
#: A session without anything that runs has a tab for this long after its last step.
_RECENT = 12 * 3600.0
_LONGEST_TITLE = 18
#: The least width of a session beside another.
_LEAST_WIDTH = 38


class SessionSummary:
    """What is known of a session, for its tab and for the overview."""

    def __init__(self, info: SessionInfo) -> None:
        self.info = info
        self.running = self.asking = self.failed = self.approvals = self.pending = 0
        self.has_agent = False

    @property
    def needs_user(self) -> int:
        return self.asking + self.approvals

    @property
    def phase(self) -> tuple[str, str, str]:
        """Word, colour, and why."""
        state = self.info.state
        if self.needs_user:
            what = [f"{self.approvals} to approve"] if self.approvals else []
            what += [f"{self.asking} asking or stuck"] if self.asking else []
            return "? waiting for you", "warn", ", ".join(what)
        if state.phase == "working":
            return ("● working", "good", state.why) if self.has_agent else ("■ stopped", "warn", "while it worked")
        if state.phase == "idle":
            waits = f"{self.running} running" if self.running else ""
            return "○ idle", "dim", ", ".join(part for part in (state.why, waits) if part)
        return "", "dim", f"{self.running} running" if self.running else "no agent"

    def marks(self) -> tuple[tuple[str, str], ...]:
        """For the tab: short."""
        found: list[tuple[str, str]] = []
        if self.needs_user:
            found.append((f"?{self.needs_user}", "warn"))
        if self.info.state.phase == "working" and not self.approvals:
            found.append(("● working", "good") if self.has_agent else ("■ stopped", "warn"))
        elif self.running:
            found.append((f"●{self.running}", "good"))
        if self.failed:
            found.append((f"✗{self.failed}", "bad"))
        if self.info.state.phase == "idle" and not found:
            found.append((f"○ {self.info.state.why}"[:14].rstrip(), "dim"))
        return tuple(found)


class SessionTabs:
    """`active` has the keys of what is in view; the empty one is the list of all processes. The last has the focus."""

    def __init__(self, app: HoldfastApp) -> None:
        self._app = app
        self._feed = app.feed
        self.book = SessionBook(None if self._feed.client.is_remote else self._feed.client.paths.home)
        self.active: list[str] = [""]
        self.views: dict[str, SessionView] = {}
        self._order: list[str] = []
        self._is_switching = False

    # What is known.

    def take(self, event: dict[str, Any]) -> None:
        session = self.book.take(event)
        if session is not None and session in self.views:
            self.views[session].take(event)

    def summaries(self) -> dict[str, SessionSummary]:
        """Of every session that is known, but the one of the agents' own processes."""
        now = time.time()
        found: dict[str, SessionSummary] = {}

        def of(name: str) -> SessionSummary:
            if name not in found:
                found[name] = SessionSummary(self.book.get(name))
            return found[name]

        for name in list(self.book.sessions):
            of(name)
        for process in self._feed.processes.values():
            if process.session == AGENTS:
                self._note_agent(process, found)
                continue
            one = of(str(process.session))
            if process.status != "ended":
                one.running += 1
                one.asking += state_of(process).key in NEEDS_USER
            elif process.id not in self._app.seen:
                one.failed += is_recent_failure(process, now)
        for approval in self._feed.approvals.values():
            of(approval.session).approvals += 1
        for name, count in self._feed.pending.items():
            if count and name != AGENTS:
                of(name).pending = count
        return found

    def _note_agent(self, process: Process, found: dict[str, SessionSummary]) -> None:
        session = (process.labels or {}).get("holdfast.agent")
        if session is not None and process.status != "ended":
            if session not in found:
                found[session] = SessionSummary(self.book.get(session))
            found[session].has_agent = True

    def tabs(self) -> list[Tab]:
        """Each keeps its place; a new one comes last."""
        summaries, now = self.summaries(), time.time()
        for name, one in summaries.items():
            is_live = one.running or one.has_agent or one.needs_user or one.failed or name in self.views
            is_live = is_live or now - one.info.changed_at < _RECENT
            if is_live and name not in self._order:
                self._order.append(name)
        shown = [Tab(name, _title(name), summaries[name].marks()) for name in self._order if name in summaries]
        return [Tab("", "all", self._all_marks(summaries)), *shown]

    def _all_marks(self, summaries: dict[str, SessionSummary]) -> tuple[tuple[str, str], ...]:
        running = sum(one.running for one in summaries.values())
        return ((f"●{running}", "good"),) if running else ()

    # What is in view.

    async def show(self, key: str) -> None:
        """This one alone."""
        await self._show([key])

    async def open_new(self, key: str, acp: str | None) -> None:
        """A session with this agent. One that has a conversation keeps its agent."""
        if key not in self.views:
            self.book.get(key).acp = acp
        await self.show(key)

    async def show_beside(self) -> None:
        """The next session beside the present ones, as long as there is space; then one alone again."""
        keys = [tab.key for tab in self.tabs() if tab.key]
        left = [key for key in keys if key not in self.active]
        now = [key for key in self.active if key]
        fits = (len(now) + 1) * _LEAST_WIDTH <= self._app.size.width
        await self._show([*now, left[0]] if left and fits else now[:1] or keys[:1] or [""])

    async def step(self, by: int) -> None:
        keys = [tab.key for tab in self.tabs()]
        at = keys.index(self.active[-1]) if self.active[-1] in keys else 0
        await self._show([keys[(at + by) % len(keys)]])

    async def _show(self, keys: list[str]) -> None:
        from holdfast.tui.sessions.view import SessionView  # not needed for the first frame

        base = self._app.screen_stack[0]
        holder = base.query_one("#views")
        if keys != self.active:
            self._feed.settle()
        self.active = keys
        base.query_one(ProcessesView).display = "" in keys
        width = self._app.size.width // len(keys)
        in_order = sorted(keys, key=lambda key: self._order.index(key) if key in self._order else len(self._order))
        with self._app.batch_update():
            for key, view in self.views.items():
                view.display = key in keys
                view.set_class(key in in_order[1:], "beside")
            for key in keys:
                if key and key not in self.views:
                    self.views[key] = SessionView(self._feed, self.book.get(key), self.book.path_of(key))
                    await holder.mount(self.views[key])
            for key in in_order if len(keys) > 1 else ():
                holder.move_child(self.views[key], after=-1)
            for key in keys:
                if key:
                    self.views[key].fit_to(width)
        self.focus()
        self._app.draw_now()

    def focus(self) -> None:
        key = self.active[-1]
        if key:
            view = self.views[key]
            (view.box if view.is_live else view.rows).focus()
            view.read_soon()
        else:
            self._app.screen_stack[0].query_one(ProcessesView).rows.focus()

    def changed(self) -> None:
        for key in self.active:
            if key in self.views:
                self.views[key].changed()

    def tick(self) -> None:
        for view in self.views.values():
            view.check_log()


def _title(name: str) -> str:
    return paint.fit(name, min(len(paint.clean(name)), _LONGEST_TITLE))


def check_name(name: str) -> str | None:
    """Why a name cannot be that of a session; None for a good one."""
    if not is_session(name):
        return "a session has 1 to 256 printable characters as its name"
    return "this is the session of the agents themselves" if name == AGENTS else None


class SessionsScreen(OverviewScreen):
    """Every session: working, waiting for you, idle, and why."""

    TITLE_TEXT = "Sessions"
    EMPTY = "no session yet: ctrl-N begins one with an agent"
    KEYS = "enter open · esc back"

    def __init__(self, tabs: SessionTabs) -> None:
        super().__init__(tabs._feed)
        self._tabs = tabs

    async def load(self) -> None:
        self.changed()

    def changed(self) -> None:
        found = self._tabs.summaries()
        rank = {"warn": 0, "good": 1}
        rows = sorted(found.items(), key=lambda one: (rank.get(one[1].phase[1], 2), -one[1].info.changed_at, one[0]))
        self.rows.set_rows(rows)

    def draw_row(self, row: SessionSummary, width: int, dark: bool) -> list[Segment]:
        word, colour, why = row.phase
        since = age_text(time.time() - row.info.changed_at) if row.info.changed_at else ""
        inbox = f"inbox {row.pending}" if row.pending else ""
        return paint.joined(
            (" " + paint.fit(row.info.name, 22), paint.style(dark, "text")),
            (" " + paint.fit(word, 18), paint.style(dark, colour, bold=colour == "warn")),
            (" " + paint.fit(why, width - 61), paint.style(dark, "dim")),
            (" " + paint.fit(inbox, 9), paint.style(dark, "dim")),
            (" " + paint.fit(since, 7, right=True), paint.style(dark, "dim")),
        )
