"""One session: the conversation with its agent, a box to write to it, its processes and its inbox."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from holdfast.agent.front import AgentFront
from holdfast.client.process import Process
from holdfast.errors import HoldfastError
from holdfast.session_log import LogTail
from holdfast.tui import paint
from holdfast.tui.processes.pane import ProcessPane
from holdfast.tui.processes.rows import draw_short, ordered
from holdfast.tui.sessions.book import SessionInfo
from holdfast.tui.sessions.transcript import Transcript
from holdfast.tui.sessions.transcript_blocks import ConversationBlocks
from holdfast.tui.widgets.row_list import RowList
from holdfast.tui.widgets.status_line import TextLine
from holdfast.tui.widgets.text_boxes import MessageBox

if TYPE_CHECKING:
    from holdfast.tui.feed import LiveFeed

#: Narrower than this, the processes are not beside the conversation.
_BESIDE = 76
#: What is streamed is drawn with pauses of at least this, and that are as many times longer than a layout takes: keys
#: come in between. The first layout takes long; what is streamed meanwhile must not wait for much longer.
_FRAME = 0.08
_REST = 4
_LONGEST_PAUSE = 0.5
_EMPTY = "write to the agent of this session; it starts with the first message"


class SessionView(Vertical):
    """`is_live` is false where the daemon is on another machine: its agents cannot be written to from here."""

    DEFAULT_CSS = """
    SessionView { width: 1fr; }
    SessionView.beside { border-left: solid $foreground 30%; }
    SessionView > Horizontal { height: 1fr; }
    SessionView #side { width: 34; border-left: solid $foreground 30%; }
    SessionView #side.hidden { display: none; }
    SessionView #side.wide { width: 55%; }
    SessionView #side.wide > .of-session, SessionView #side.wide > #inbox { display: none; }
    SessionView #inbox { height: 1; padding: 0 1; color: $foreground 70%; }
    SessionView > #doing { height: 1; padding: 0 1; color: $foreground 70%; background: $panel; }
    SessionView > MessageBox, SessionView > MessageBox:focus {
        height: auto; max-height: 8; border: none; border-left: outer $primary; padding: 0;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", show=False),
        Binding("enter", "enlarge", show=False),
    ]

    def __init__(self, feed: LiveFeed, info: SessionInfo, path: str | None) -> None:
        super().__init__()
        self.feed = feed
        self.info = info
        self.is_live = path is not None
        self.conversation = ConversationBlocks()
        self._tail = LogTail(path) if path is not None else None
        self._front = AgentFront(feed.client, info.name, info.acp) if path is not None else None
        self._is_due = False
        self._retry = ""
        self._reading = asyncio.Lock()

    @property
    def session(self) -> str:
        return self.info.name

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Transcript(self.conversation, empty=_EMPTY if self.is_live else "its log is on another machine")
            with Vertical(id="side"):
                yield RowList[Process](draw_short, empty="no process", classes="of-session")
                yield TextLine(id="inbox")
        yield TextLine(id="doing")
        yield MessageBox(highlight_cursor_line=False, placeholder="write to the agent", disabled=not self.is_live)

    def on_mount(self) -> None:
        self.read_soon()
        self.changed()

    @property
    def box(self) -> MessageBox:
        return self.query_one(MessageBox)

    @property
    def rows(self) -> RowList[Process]:
        return self.query_one(".of-session", RowList)

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    def on_resize(self, event: events.Resize) -> None:
        if self.display and event.size.width:
            self.fit_to(event.size.width)

    def fit_to(self, width: int) -> None:
        """The processes are beside the conversation where there is space for them."""
        self.query_one("#side").set_class(width < _BESIDE, "hidden")

    # The log.

    def read_soon(self) -> None:
        """Read what is new in the log; several calls read once."""
        if not self._is_due and self._tail is not None:
            self._is_due = True
            self.set_timer(_FRAME / 2, self._read)

    async def _read(self) -> None:
        self._is_due = False
        assert self._tail is not None
        async with self._reading:
            found = await asyncio.to_thread(self._tail.read)
        for entry in found:
            self.conversation.add(entry)
        if found:
            self._draw()

    def _draw(self) -> None:
        if self.is_mounted and self.is_attached:
            self.transcript.changed()
            self.say_doing()

    def take(self, event: dict[str, Any]) -> None:
        """An event of the agent of this session."""
        topic, entry = str(event.get("type")), event.get("entry")
        if topic == "tui.message.delta" and isinstance(entry, int):
            self.conversation.delta(entry, str(event.get("text") or ""))
            self._draw_soon()
        elif topic == "tui.error":
            self._retry = (
                f"asks again in {event['retry_in']} s: {event.get('message')}" if event.get("retry_in") else ""
            )
            if isinstance(entry, int):
                self.conversation.restart_draft(entry)
            self._draw_soon()
        elif topic in ("agent.step", "agent.end", "tui.message.complete", "tui.tool.complete"):
            self._retry = ""
            self.read_soon()

    _is_drawing = False

    def _draw_soon(self) -> None:
        if not self._is_drawing and self.display:
            self._is_drawing = True
            rest = min(_LONGEST_PAUSE, _REST * self.transcript.layout_seconds)
            self.set_timer(self.app.pause(max(_FRAME, rest)), self._draw_now)  # type: ignore[attr-defined]

    def _draw_now(self) -> None:
        self._is_drawing = False
        self._draw()

    # Processes and inbox.

    def changed(self) -> None:
        """The feed has something new."""
        if not (self.is_mounted and self.is_attached):
            return
        own = [one for one in self.feed.processes.values() if one.session == self.session]
        self.rows.set_rows([(one.id, one) for one in ordered(own, self.feed.over)])
        pending = self.feed.pending[self.session]
        approvals = sum(1 for one in self.feed.approvals.values() if one.session == self.session)
        parts = [f"inbox {pending}"] if pending else []
        parts += [f"approvals {approvals}"] if approvals else []
        self.query_one("#inbox", TextLine).show(" · ".join(parts))
        self.say_doing()

    def say_doing(self) -> None:
        """What the agent does, above the box."""
        state = self.info.state
        name = self.conversation.model or self.info.acp
        model = f"{name} · " if name else ""
        why = f" · {state.why}" if state.why else ""
        used = f" · {self.conversation.used.text}" if self.conversation.used.text else ""
        text = {"working": f"● working{why}", "idle": f"idle{why}{used}"}.get(state.phase, "no agent yet")
        if any(one.session == self.session for one in self.feed.approvals.values()):
            text = "? waits for your answer"
        text = self._retry or text
        self.query_one("#doing", TextLine).show(paint.clean(f"{self.session} · {model}{text}"))

    async def on_row_list_row_opened(self, event: RowList.RowOpened) -> None:
        """Its output in place of the list."""
        event.stop()
        pane = ProcessPane(self.feed, event.key)
        self.query_one("#side").add_class("wide")
        await self.query_one("#side").mount(pane)
        pane.body.focus()

    def action_enlarge(self) -> None:
        """The process that is open, on the whole screen."""
        for pane in self.query(ProcessPane):
            self.app.open_process(pane.process, pane.mode)  # type: ignore[attr-defined]

    async def close_process(self) -> bool:
        """Back to the list; whether a process was open."""
        panes = self.query(ProcessPane)
        if not panes:
            return False
        if not await panes.first().close_find():
            await panes.remove()
            self.query_one("#side").remove_class("wide")
            self.rows.focus()
        return True

    # Writing to the agent.

    def on_message_box_message_entered(self, event: MessageBox.MessageEntered) -> None:
        event.stop()
        self.run_worker(self.send(event.text), exit_on_error=False)

    async def send(self, text: str) -> None:
        """Starts the agent where none runs. What could not be sent is in the box again."""
        assert self._front is not None
        block = self.conversation.sending(text)
        self.transcript.is_following = True
        self._draw()
        try:
            await self._front.send(text)
        except (HoldfastError, TimeoutError) as failed:
            said = failed if isinstance(failed, HoldfastError) else HoldfastError("the agent did not start in time")
            self.app.say(f"{said.message}. Next: {said.next}" if said.next else said.message, "error")  # type: ignore[attr-defined]
            if not self.box.text:
                self.box.text = text
        finally:
            self.conversation.drop(block)
            await self._read()
            self._draw()

    def on_message_box_interrupt_asked(self, event: MessageBox.InterruptAsked) -> None:
        event.stop()
        self.action_interrupt()

    def action_interrupt(self) -> None:
        if self.info.state.phase != "working" or self._front is None:
            self.app.say("the agent does nothing now; ctrl-Q leaves, and everything goes on")  # type: ignore[attr-defined]
            return
        self.run_worker(self._interrupt(), exit_on_error=False)

    async def _interrupt(self) -> None:
        assert self._front is not None
        try:
            await self._front.interrupt()
        except HoldfastError as failed:
            self.app.say(failed.message, "error")  # type: ignore[attr-defined]
        else:
            self.app.say("asked to stop; background processes go on")  # type: ignore[attr-defined]

    def check_log(self) -> None:
        """Once a second: an event may have come before its entry, or was lost with the daemon."""
        if self._tail is not None and self._tail.has_more:
            self.read_soon()
