"""The terminal UI itself: one screen with tabs, and screens above it for a process and for lists."""

from __future__ import annotations

import gc
import time
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any, ClassVar

from textual import events
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.css.query import NoMatches
from textual.screen import Screen

from holdfast.client.process import Process
from holdfast.tui import paint
from holdfast.tui.feed import LiveFeed
from holdfast.tui.header import NeedsYou, TabBar
from holdfast.tui.help_keys import HELP, LIST_KEYS
from holdfast.tui.overviews import ApprovalsScreen, BackendsScreen, EventsScreen, InboxScreen, OverviewScreen
from holdfast.tui.processes.actions import ProcessActions
from holdfast.tui.processes.pane import ProcessPane, ProcessScreen
from holdfast.tui.processes.rows import AGENTS, note_text
from holdfast.tui.processes.terminal_view import TerminalView
from holdfast.tui.processes.view import ProcessesView
from holdfast.tui.sessions.tabs import SESSION_KEYS, SessionsScreen, SessionTabs, check_name
from holdfast.tui.states import state_of
from holdfast.tui.user_needs import UserNeed, needs
from holdfast.tui.widgets.dialogs import HelpDialog, NewSessionDialog
from holdfast.tui.widgets.lines_view import LinesView
from holdfast.tui.widgets.row_list import RowList
from holdfast.tui.widgets.status_line import StatusLine

#: Lower than this, dialogs have no frame, and sessions no line about the agent.
_LOW = 10
#: Changes within this time are drawn together.
_FRAME = 0.05
#: After a key, other changes are drawn at most this often for a while: what the user types comes first.
_TYPING_FRAME = 0.25
_TYPING = 1.0
#: All objects are searched for unused cycles, which takes long: at most this often, and while the user types nothing.
_COLLECT = 30.0
_OBJECTS = (10_000, 20, 1_000_000_000)


class HoldfastApp(App[None]):
    """`theme_name` is dark or light; `known` are the processes that the first frame showed."""

    TITLE = "holdfast"
    COMMAND_PALETTE_BINDING = "ctrl+k"
    CSS = """
    Screen { background: $background; color: $foreground; }
    #views { height: 1fr; }
    .-low #doing { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "end_process", show=False),
        Binding("r", "restart_process", show=False),
        Binding("s", "send_line", show=False),
        Binding("y", "copy_id", show=False),
        Binding("l", "open_process('log')", show=False),
        Binding("t", "open_process('terminal')", show=False),
        Binding("d", "open_process('details')", show=False),
        Binding("a", "answer", show=False),
        Binding("alt+a", "answer", show=False, priority=True),
        Binding("i", "inbox", show=False),
        Binding("question_mark", "keys", show=False),
        Binding("escape", "back", show=False),
        Binding("left_square_bracket", "tab(-1)", show=False),
        Binding("right_square_bracket", "tab(1)", show=False),
        *(Binding(f"f{n}", f"tab_number({n})", show=False, priority=True) for n in range(1, 10)),
        *(Binding(str(n), f"tab_number({n})", show=False) for n in range(1, 10)),
        Binding("ctrl+o", "sessions", show=False, priority=True),
        Binding("ctrl+n", "new_session", show=False, priority=True),
        Binding("vertical_line", "beside", show=False),
        Binding("ctrl+q", "quit", show=False, priority=True),
    ]

    def __init__(self, theme_name: str = "dark", known: list[Process] | None = None) -> None:
        super().__init__()
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (_LOW, "-high")]
        for name in ("dark", "light"):
            self.register_theme(paint.theme(name))
        self.theme = f"holdfast-{theme_name}"
        self.feed = LiveFeed(self._note_change, self._note_event)
        if known is not None:
            self.feed.begin_with(known)
        self.actions = ProcessActions(self)
        #: Failures that were looked at.
        self.seen: set[str] = set()
        self._is_due = False
        self._key_at = self._collected_at = 0.0
        self.sessions = SessionTabs(self)

    def compose(self) -> ComposeResult:
        yield TabBar()
        yield NeedsYou()
        with Horizontal(id="views"):
            yield ProcessesView(self.feed)
        yield StatusLine(LIST_KEYS)

    def on_mount(self) -> None:
        self.query_one(ProcessesView).rows.focus()
        self.sessions.book.load()
        self.draw_now()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        """After the first frame."""
        gc.freeze()
        gc.set_threshold(*_OBJECTS)
        gc.enable()
        self.run_worker(self.feed.run(), exit_on_error=True)
        self.set_interval(1.0, self._tick)

    async def on_unmount(self) -> None:
        await self.feed.client.close()

    # Keeping up.

    def _note_change(self) -> None:
        """Draw soon; several changes are drawn once."""
        if not self._is_due and self.screen_stack:
            self._is_due = True
            self.set_timer(self.pause(_FRAME), self._draw_changes)

    def pause(self, least: float) -> float:
        """How long to wait with the next frame of something that moves by itself."""
        return max(least, _TYPING_FRAME) if time.monotonic() < self._key_at + _TYPING else least

    async def on_event(self, event: events.Event) -> None:
        """A key of a list acts before the next key is looked at, which may belong elsewhere: a letter behind `/`."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            self._key_at = time.monotonic()
            key = event.key
            is_list = self.focused is None or isinstance(self.focused, LinesView)
            if is_list and await self.press_in_list(key):
                return
        await super().on_event(event)

    async def press_in_list(self, key: str) -> bool:
        """Do what a key is bound to, where a list has the focus; whether it is bound to something."""
        return await self._check_bindings(key, True) or await self._check_bindings(key)

    def _draw_changes(self) -> None:
        self._is_due = False
        with suppress(NoMatches):  # it is being closed
            self.draw_now()

    def draw_now(self) -> None:
        if not self.screen_stack:
            return
        base = self.screen_stack[0]
        if (processes := base.query_one(ProcessesView)).display:
            processes.changed()
        base.query_one(TabBar).show(self.sessions.tabs(), tuple(self.sessions.active), self._note())
        self.sessions.changed()
        base.query_one(StatusLine).set_keys(SESSION_KEYS if self.sessions.active[-1] else LIST_KEYS)
        needs_you = base.query_one(NeedsYou)
        needs_you.show(self._needs(), bool(self.sessions.active[-1]))
        shown = [self.feed.approvals[one.id] for one in needs_you.in_view if one.kind == "approval"]
        if shown:
            self.run_worker(self.feed.note_shown(shown), exit_on_error=False)
        for screen in self.screen_stack:
            if isinstance(screen, OverviewScreen) and screen.is_mounted:
                screen.changed()
            for pane in screen.query(ProcessPane):
                pane.changed()

    def _note_event(self, event: dict[str, Any]) -> None:
        if not self.screen_stack:
            return
        if event.get("type") == "process.output":
            with suppress(NoMatches):  # it is being closed
                self.screen_stack[0].query_one(ProcessesView).show_last(str(event.get("id")))
        self.sessions.take(event)
        if str(event.get("type")).startswith("agent."):
            self._note_change()
        if isinstance(self.screen, EventsScreen):
            self.screen.take(event)

    def _tick(self) -> None:
        """Ages grow, messages go."""
        now = time.monotonic()
        if now > max(self._collected_at + _COLLECT, self._key_at + _TYPING):
            self._collected_at = now
            gc.collect()
        self.feed.drop_expired()
        self.sessions.tick()
        for screen in self.screen_stack:
            for line in screen.query(StatusLine):
                line.tick()
            for rows in screen.query(RowList):
                rows.refresh()
            for pane in screen.query(ProcessPane):
                pane.update_title()
        self._note_change()

    def _shown_processes(self) -> list[Process]:
        return sorted(self.feed.processes.values(), key=lambda one: -(one.created_at or one.started_at or 0.0))

    def _needs(self) -> list[UserNeed]:
        agents = {name for name, one in self.sessions.summaries().items() if one.has_agent}
        return needs(list(self.feed.approvals.values()), self._shown_processes(), self.seen, agents)

    def _note(self) -> tuple[str, str]:
        if not self.feed.is_connected:
            return "connecting…", "warn"
        return note_text(self.feed.processes.values()), "dim"

    # Tabs.

    def on_tab_bar_tab_chosen(self, event: TabBar.TabChosen) -> None:
        self._do(self.sessions.show(event.key))

    def action_tab(self, by: int) -> None:
        """The next or the previous one."""
        if len(self.screen_stack) == 1:
            self._do(self.sessions.step(by))

    def action_tab_number(self, number: int) -> None:
        keys = [tab.key for tab in self.sessions.tabs()]
        if len(self.screen_stack) == 1 and number <= len(keys):
            self._do(self.sessions.show(keys[number - 1]))

    def action_beside(self) -> None:
        if len(self.screen_stack) == 1:
            self._do(self.sessions.show_beside())

    def action_sessions(self) -> None:
        if not isinstance(self.screen, SessionsScreen):
            self.push_screen(SessionsScreen(self.sessions), self._show_session)

    def _show_session(self, session: str | None) -> None:
        if session is not None:
            self._do(self.sessions.show(session))

    def action_new_session(self) -> None:
        self._do(self._new_session())

    async def _new_session(self) -> None:
        made = await self.push_screen_wait(
            NewSessionDialog(time.strftime("chat-%m%d-%H%M"), self.sessions.book.programs())
        )
        if made is None:
            return
        if (why_not := check_name(made.name)) is not None:
            self.say(why_not, "error")
            return
        await self.sessions.open_new(made.name, made.acp)

    # What the user does.

    @property
    def present_process(self) -> Process | None:
        """The one that is open, else the one with the cursor."""
        for pane in self.screen.query(ProcessPane):
            if pane.has_focus_within:
                return self.feed.processes.get(pane.process)
        for rows in self.screen.query(RowList):
            if rows is self.focused and isinstance(rows.row, Process):
                return self.feed.processes.get(rows.row.id)
        return None

    def say(self, text: str, kind: str = "") -> None:
        for line in self.screen.query(StatusLine):
            line.say(text, kind)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        self.run_worker(work, exit_on_error=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While the user types into a terminal, no key is ours."""
        focused = self.focused
        if isinstance(focused, TerminalView) and focused.is_typing:
            return False
        return super().check_action(action, parameters)

    def action_end_process(self) -> None:
        if (process := self.present_process) is not None:
            self._do(self.actions.end(process))

    def action_restart_process(self) -> None:
        if (process := self.present_process) is not None:
            self._do(self.actions.restart(process))

    def action_send_line(self) -> None:
        if (process := self.present_process) is not None:
            self._do(self.actions.type_line(process))

    def action_copy_id(self) -> None:
        if (process := self.present_process) is not None:
            self.copy_to_clipboard(process.id)
            self.say(f"copied {process.id}")

    def action_open_process(self, mode: str) -> None:
        if (process := self.present_process) is not None and not isinstance(self.screen, ProcessScreen):
            self.open_process(process.id, mode)

    def open_process(self, process: str, mode: str = "log") -> None:
        self.seen.add(process)
        known = self.feed.processes.get(process)
        if mode == "terminal" and known is not None and not known.pty:
            self.say(f"{known.name or known.id} has no terminal: l shows its output, s sends a line", "error")
            return
        self.push_screen(ProcessScreen(self.feed, process, mode))

    def on_row_list_row_opened(self, event: RowList.RowOpened) -> None:
        self.seen.add(event.key)
        self.open_process(event.key)

    def on_needs_you_need_chosen(self, event: NeedsYou.NeedChosen) -> None:
        self._answer_need(event.need)

    def action_answer(self) -> None:
        """The first thing that needs the user; a list where several requests wait."""
        found = self._needs()
        if len(self.feed.approvals) > 1 and not isinstance(self.screen, ApprovalsScreen):
            self.push_screen(ApprovalsScreen(self.feed), self._answer_approval)
        elif found:
            self._answer_need(found[0])
        else:
            self.say("nothing needs you")

    def _answer_need(self, need: UserNeed) -> None:
        if need.kind == "approval":
            self._answer_approval(need.id)
            return
        process = self.feed.processes.get(need.id)
        if process is None:
            return
        if process.needs_input and process.status != "ended":
            if process.pty:
                self.open_process(process.id, "terminal")
            else:
                self._do(self.actions.type_line(process))
        else:
            self.open_process(process.id)

    def _answer_approval(self, approval: str | None) -> None:
        found = self.feed.approvals.get(approval or "")
        if found is not None:
            self._do(self.actions.answer(found))

    def action_keys(self) -> None:
        self.push_screen(HelpDialog(HELP))

    async def action_back(self) -> None:
        if len(self.screen_stack) > 1:
            return
        if self.sessions.active == [""]:
            await self.screen.query_one(ProcessesView).leave()
            return
        view = self.sessions.views[self.sessions.active[-1]]
        if await view.close_process():
            return
        if self.focused is view.box:
            view.transcript.focus()
        else:
            await self.sessions.show("")

    # Lists.

    def present_session(self) -> str | None:
        if self.sessions.active[-1]:
            return self.sessions.active[-1]
        process = self.present_process
        return str(process.session) if process is not None else None

    def action_inbox(self) -> None:
        if (session := self.present_session()) is not None:
            self.push_screen(InboxScreen(self.feed, session), self._open_chosen)

    def _open_chosen(self, process: str | None) -> None:
        if process is not None:
            self.open_process(process)

    def action_events(self) -> None:
        self.push_screen(EventsScreen(self.feed), self._open_chosen)

    def action_backends(self) -> None:
        self.push_screen(BackendsScreen(self.feed))

    def action_approvals(self) -> None:
        self.push_screen(ApprovalsScreen(self.feed), self._answer_approval)

    def action_light_or_dark(self) -> None:
        self.theme = "holdfast-light" if self.current_theme.dark else "holdfast-dark"
        for screen in self.screen_stack:
            screen.refresh(repaint=True, layout=True)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield SystemCommand("Sessions", "What each agent does", self.action_sessions)
        yield SystemCommand("New session", "A conversation with an agent", self.action_new_session)
        yield SystemCommand("Side by side", "One more session beside this one", self.action_beside)
        yield SystemCommand("Approvals", "Requests that wait for an answer", self.action_approvals)
        yield SystemCommand("Inbox", "Pending notifications of the session", self.action_inbox)
        yield SystemCommand("Events", "What happened, the newest first", self.action_events)
        yield SystemCommand("Backends", "Where commands can run", self.action_backends)
        yield SystemCommand("Light or dark", "Change the colours", self.action_light_or_dark)
        yield SystemCommand("Keys", "All keys", self.action_keys)
        yield SystemCommand("Quit", "Everything goes on running", self.exit)
        for process in self._shown_processes()[:200]:
            if process.session != AGENTS:
                title = paint.clean(f"{process.name or process.command}")[:60]
                text = f"{state_of(process).label} · {process.session}"
                yield SystemCommand(title, text, lambda id=process.id: self.open_process(id))
