"""What the agent of a session does in any case: its log, messages of the user, notices, recovery after a crash.

How a turn is done is up to subclasses: by a model (`loop`), or by another program (`acp.agent`). Every step is in the
session log before it is acted on, and a notice is acknowledged when it is in the log.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from holdfast.agent import conversation, recovery
from holdfast.agent.announcer import LONGEST_TEXT, Announcer
from holdfast.agent.config import AgentConfig
from holdfast.agent.conversation import ToolCall
from holdfast.agent.toolbox import ToolOutcome
from holdfast.client.aio import AsyncClient
from holdfast.errors import BadValue, HoldfastError
from holdfast.model.agents import INPUT_TOPIC, INTERRUPT_TOPIC
from holdfast.session_log import Kind, LogEntry, SessionLog
from holdfast.tools.answers import answer
from holdfast_keeper import failpoints

T = TypeVar("T")

_FOLLOWED = f"{INPUT_TOPIC} {INTERRUPT_TOPIC}"
#: Calls that are interrupted are answered within this time, or given up.
INTERRUPT_TIME = 1.2
_PAUSE = 1.0
_INBOX_WAIT = 300.0
_MOST_NOTICES = 20


class TurnInterrupted(Exception):
    """The user sent a message, or interrupted."""


class SessionAgent(ABC):
    """The agent of one session. `run` returns when it is idle for long, or was asked to stop."""

    def __init__(self, log: SessionLog, client: AsyncClient, config: AgentConfig, since: int | None = None) -> None:
        """`since`: the event before the first input of a new session."""
        self._log = log
        self._client = client
        self._config = config
        self._events = Announcer(client)
        seqs = [entry.content["seq"] for entry in log.entries if isinstance(entry.content.get("seq"), int)]
        self._since = max(seqs, default=since)
        self._seen = {entry.content.get("key") or entry.content.get("input") for entry in log.entries}
        self._inputs: deque[dict[str, Any]] = deque()
        self._interrupt = asyncio.Event()
        self._has_notices = asyncio.Event()
        self._inbox_read = asyncio.Event()
        self._is_over = False
        self._must_compact = False

    # For subclasses.

    @abstractmethod
    def _set(self, seq: int | None = None, **changes: str | None) -> None:
        """Log the settings, where they differ. Raises BadValue."""

    @abstractmethod
    async def _turn(self) -> None:
        """Answer what is new in the log, until the turn ends."""

    @abstractmethod
    async def _close(self) -> None:
        """The agent ends."""

    # Running.

    @property
    def _settings(self) -> dict[str, Any]:
        """Those in effect."""
        found = [entry for entry in self._log.branch() if entry.kind == "settings"]
        return found[-1].content if found else {}

    async def run(self) -> None:
        background = [asyncio.create_task(work) for work in (self._events.run(), self._follow(), self._watch_inbox())]
        try:
            await self.recover()
            self._set()
            while not self._is_over:
                self._take_inputs()
                await self._take_notices()
                if conversation.is_open(self._log.branch()) or self._must_compact:
                    await self._turn()
                elif not (self._inputs or self._is_over) and not await self._idle():
                    break
            await self._events.flush()
        finally:
            for task in background:
                task.cancel()
            await asyncio.wait(background)
            await self._close()

    async def recover(self) -> None:
        """Answer the calls that were under way when an earlier agent died; none of them is run again."""
        for call in conversation.open_calls(self._log.branch()):
            self._answer(call.call, await recovery.fate(self._client, call))
        last = next((entry for entry in reversed(self._log.branch()) if entry.kind in ("assistant", "end")), None)
        if last is not None and last.kind == "assistant" and not conversation.is_open(self._log.branch()):
            self._append("end", reason="done")

    async def _idle(self) -> bool:
        """Wait for a message or a notice. False when the agent is not needed any more."""
        waits = [asyncio.create_task(one.wait()) for one in (self._interrupt, self._has_notices)]
        try:
            timeout = self._config.idle_exit or None
            done, _ = await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if done:
            return True
        try:
            return bool(await self._client.ps(session=self._client.session, used=False))
        except HoldfastError:
            return True

    async def _guarded(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome of the work. Raises TurnInterrupted, once the work was cancelled."""
        task, stop = asyncio.ensure_future(work), asyncio.ensure_future(self._interrupt.wait())
        try:
            await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise TurnInterrupted
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=INTERRUPT_TIME)

    def _begin_turn(self) -> None:
        self._events.kept("agent.start", entry=self._log.head, model=self._settings.get("model"))

    def _end_turn(self, reason: str) -> None:
        end = self._append("end", reason=reason)
        used = conversation.usage_of(self._log.branch())
        self._events.kept("agent.end", entry=end.id, reason=reason, **used._asdict())

    def _fail(self, message: str, next: str | None) -> None:
        """The turn fails: it is logged, and shown."""
        self._append("error", message=message, next=next)
        self._events.shown("tui.error", message=message, next=next)

    def _answer(self, call: ToolCall, outcome: ToolOutcome) -> None:
        fields = {"call": call.id, "name": call.name, "status": outcome.status, "is_error": outcome.is_error}
        kind = {"error": "ToolError"} if outcome.is_invalid else {}
        self._append("tool_result", **fields, **kind, text=outcome.text)
        self._events.shown("tui.tool.complete", **fields, text=outcome.text[:LONGEST_TEXT])

    def _skip_open_calls(self) -> None:
        """Answer the calls that an interrupt left without an answer."""
        for open_call in conversation.open_calls(self._log.branch()):
            what = "the call was interrupted" if open_call.is_started else "skipped: the call was not run"
            next = "see what the user wants now"
            reason = "interrupted" if open_call.is_started else "skipped"
            self._answer(open_call.call, ToolOutcome.of(answer("interrupted", reason, next, note=what)))

    # Messages of the user, and notices.

    async def _follow(self) -> None:
        """Collect what front ends publish for this session, from where an earlier agent stood."""
        begun = time.time()
        since = self._since
        while True:
            try:
                async with self._client.events(_FOLLOWED, since=since, follow=True) as events:
                    async for event in events:
                        since = event.get("seq", since)
                        is_input = event.get("type") == INPUT_TOPIC
                        chosen = str(event.get("id") or event.get("seq"))
                        if event.get("session") != self._client.session or chosen in self._seen:
                            continue  # a message of which the sender did not get the reply may come twice
                        self._seen.add(chosen)
                        if is_input or (event.get("type") == INTERRUPT_TOPIC and event["ts"] >= begun):
                            self._inputs.append(event if is_input else {**event, "kind": "interrupt"})
                            self._interrupt.set()
            except HoldfastError:
                await asyncio.sleep(_PAUSE)

    def _take_inputs(self) -> bool:
        """Log what the user sent; whether there was a message."""
        has_message = False
        while self._inputs:
            event = self._inputs.popleft()
            seq = event.get("seq")
            match event.get("kind", "message"):
                case "message" if isinstance(event.get("text"), str) and event["text"].strip():
                    self._append("user", text=event["text"], input=event.get("id"), seq=seq)
                    has_message = True
                case "settings":
                    given = {key: event.get(key) for key in ("model", "base_url", "toolset")}
                    try:
                        self._set(seq, **{key: text for key, text in given.items() if isinstance(text, str)})
                    except BadValue as bad:
                        self._append("error", message=bad.message, next=bad.next, seq=seq)
                case "compact":
                    self._must_compact = True
                case "stop":
                    self._is_over = True
                    self._append("end", reason="stopped", seq=seq)
                case _:
                    pass
            failpoints.reach("agent-input-logged")
        self._interrupt.clear()
        return has_message

    async def _watch_inbox(self) -> None:
        """Sets `has_notices` whenever a notice is pending."""
        while True:
            try:
                found = await self._client.inbox(wait=_INBOX_WAIT, limit=1)
            except HoldfastError:
                await asyncio.sleep(_PAUSE)
                continue
            if found:
                self._inbox_read.clear()
                self._has_notices.set()
                await self._inbox_read.wait()

    async def _take_notices(self) -> None:
        """Log the pending notices of the session. Each is acknowledged when it is in the log, and logged once."""
        try:
            found = await self._client.inbox(limit=_MOST_NOTICES, take=True)
            for notice in found:
                if notice.key not in self._seen:
                    fields = {"notice": notice.id, "key": notice.key, "process": notice.process}
                    self._append("notice", **fields, about=notice.kind, text=notice.text)
                    self._seen.add(notice.key)
                failpoints.reach("agent-notice-logged")
            if found:
                await self._client.ack(*found)
        except HoldfastError:
            return  # they stay pending
        finally:
            self._has_notices.clear()
            self._inbox_read.set()

    def _append(self, kind: Kind, **content: Any) -> LogEntry:
        entry = self._log.append(kind, **content)
        self._events.kept("agent.step", entry=entry.id, kind=kind)
        return entry
