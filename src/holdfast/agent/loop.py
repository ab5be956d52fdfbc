"""The agent's loop: ask the model, run its calls, go on; between two steps the user's messages and notices enter.

Every step is in the session log before it is acted on. A killed agent goes on from there: `recover` answers the calls
that were under way, and runs none of them again.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from holdfast.agent import compaction, conversation, recovery
from holdfast.agent.announcer import LONGEST_TEXT, Announcer
from holdfast.agent.config import AgentConfig
from holdfast.agent.conversation import ToolCall
from holdfast.agent.model_client import Draft, ModelAnswer, ModelClient, ModelFailed
from holdfast.agent.prompts import system_prompt
from holdfast.agent.toolbox import Toolbox, ToolError, ToolOutcome, groups
from holdfast.client.aio import AsyncClient
from holdfast.errors import BadValue, HoldfastError
from holdfast.model.agents import INPUT_TOPIC, INTERRUPT_TOPIC
from holdfast.session_log import Kind, LogEntry, SessionLog
from holdfast.tools.aio import AsyncTools
from holdfast.tools.answers import answer
from holdfast_keeper import failpoints

T = TypeVar("T")

_FOLLOWED = f"{INPUT_TOPIC} {INTERRUPT_TOPIC}"
#: Calls that are interrupted are answered within this time, or given up.
_INTERRUPT_TIME = 1.2
_PAUSE = 1.0
_INBOX_WAIT = 300.0
_MOST_NOTICES = 20
#: A turn ends after so many steps in a row in which no call could be run.
_MOST_INVALID = 5
#: A conversation that fills this share of the context is compacted.
_FULL = 0.8


class TurnInterrupted(Exception):
    """The user sent a message, or interrupted."""


class Agent:
    """The agent of one session. `run` returns when it is idle for long, or was asked to stop."""

    def __init__(
        self,
        log: SessionLog,
        client: AsyncClient,
        tools: AsyncTools,
        toolbox: Toolbox,
        config: AgentConfig,
        make_model: Callable[[str], ModelClient],
        since: int | None = None,
    ) -> None:
        """`make_model` makes the client of an endpoint. `since`: the event before the first input of a new session."""
        self._log = log
        self._client = client
        self._tools = tools
        self._toolbox = toolbox
        self._config = config
        self._make_model = make_model
        self._model: ModelClient | None = None
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

    # The settings in effect.

    @property
    def _settings(self) -> dict[str, Any]:
        found = [entry for entry in self._log.branch() if entry.kind == "settings"]
        return found[-1].content if found else {}

    def _set(self, seq: int | None = None, **changes: str | None) -> None:
        """Log the settings, where they differ: what was chosen, else what is configured. Raises BadValue."""
        config, before = self._config, self._settings
        chosen: dict[str, str | None] = {**before.get("chosen", {}), **changes}
        names = ("model", "base_url", "toolset")
        now: dict[str, Any] = {name: chosen.get(name) or getattr(config, name) for name in names}
        self._toolbox.choose(now["toolset"])
        now |= {"chosen": chosen, "system": system_prompt(config, os.getcwd()), "cwd": os.getcwd()}
        if seq is not None or any(before.get(key) != value for key, value in now.items()):
            tools = [state._asdict() for state in self._toolbox.states]
            self._append("settings", **now, tools=tools, seq=seq if seq is not None else self._since)
        if before.get("base_url") != now["base_url"]:
            self._model = None

    # Running.

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
            if self._model is not None:
                await self._model.close()

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

    async def _turn(self) -> None:
        """Ask the model until it has nothing more to do."""
        self._events.kept("agent.start", entry=self._log.head, model=self._settings.get("model"))
        reason, steps, invalid = "done", 0, 0
        while True:
            try:
                if steps >= self._config.max_steps:
                    reason = "max_steps"
                    break
                await self._compact_if_full()
                if not conversation.is_open(self._log.branch()):
                    break
                made, runnable = await self._step()
                steps += 1
                invalid = 0 if runnable or not made.calls else invalid + 1
                if invalid >= _MOST_INVALID:
                    reason = "invalid_calls"
                    break
                if any(event.get("kind") == "interrupt" for event in self._inputs):
                    raise TurnInterrupted
                self._take_inputs()
                await self._take_notices()
                if self._is_over or not conversation.is_open(self._log.branch()):
                    break
            except TurnInterrupted:
                self._skip_open_calls()
                self._append("interrupt")
                if not self._take_inputs() or self._is_over:
                    reason = "interrupted"
                    break
            except ModelFailed as failed:
                if failed.is_overflow and self._log.entries[-1].kind != "compaction" and not self._must_compact:
                    self._must_compact = True
                    continue
                self._append("error", message=failed.message, next=failed.next)
                self._events.shown("tui.error", message=failed.message, next=failed.next)
                reason, self._must_compact = "error", False
                self._is_over = self._is_over or failed.is_access  # the next agent has the environment of the user
                break
        end = self._append("end", reason=reason)
        used = conversation.usage_of(self._log.branch())
        self._events.kept("agent.end", entry=end.id, reason=reason, **used._asdict())

    # One step.

    async def _step(self) -> tuple[ModelAnswer, int]:
        """Ask the model once and run its calls: the answer, and how many calls could be run."""
        made = await self._ask(conversation.messages(self._log.branch()), self._toolbox.schemas)
        self._append("assistant", **made.fields(), model=self._settings["model"])
        failpoints.reach("agent-answer-logged")
        return made, await self._run_calls(made.calls)

    async def _ask(self, messages: list[dict[str, Any]], schemas: list[dict[str, Any]]) -> ModelAnswer:
        """Raises ModelFailed, TurnInterrupted; what was streamed before an interrupt is in the log."""
        settings = self._settings
        if not settings.get("model"):
            raise ModelFailed("no model is configured", next="holdfast agent --setup, or --model M --base-url URL")
        if self._model is None:
            try:
                self._model = await asyncio.to_thread(self._make_model, settings["base_url"])
            except ModelFailed:
                raise
            except HoldfastError as failed:
                raise ModelFailed(failed.message, next=failed.next, is_access=True) from failed
        draft, entry = Draft(), self._log.next_id
        topics = {"text": "tui.message.delta", "reasoning": "tui.reasoning.delta"}

        def on_delta(kind: str, text: str) -> None:
            if kind == "tool":
                self._events.shown("tui.tool.generating", entry=entry, name=text[:64])
            else:
                self._events.delta(topics[kind], entry, text)

        async def on_retry(message: str, pause: float) -> None:
            self._events.shown("tui.error", entry=entry, message=message, retry_in=round(pause, 1))

        self._events.shown("tui.message.start", entry=entry)
        asking = self._model.ask(settings["model"], messages, schemas, on_delta, on_retry, draft)
        try:
            made = await self._guarded(asking)
        except TurnInterrupted:
            if schemas and (text := "".join(draft.text)):
                self._append("assistant", text=text, calls=[], is_partial=True, model=settings["model"])
            raise
        finally:
            self._events.shown("tui.message.complete", entry=entry)
        if made.reasoning:
            self._events.shown("tui.reasoning.available", entry=entry, characters=len(made.reasoning))
        return made

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
                await asyncio.wait([task], timeout=_INTERRUPT_TIME)

    async def _run_calls(self, calls: list[ToolCall]) -> int:
        """Run calls beside each other, those that change files alone: how many could be run. Raises TurnInterrupted."""
        return sum([await self._run_group(group) for group in groups(calls)])

    async def _run_group(self, calls: list[ToolCall]) -> int:
        tasks = [asyncio.ensure_future(self._run_call(call)) for call in calls]
        stop = asyncio.ensure_future(self._interrupt.wait())
        together = asyncio.ensure_future(asyncio.wait(tasks))
        try:
            await asyncio.wait([together, stop], return_when=asyncio.FIRST_COMPLETED)
            if not together.done():
                await self._tools.interrupt(everywhere=False)
                await asyncio.wait(tasks, timeout=_INTERRUPT_TIME)
            if self._interrupt.is_set():
                raise TurnInterrupted
            return sum(task.result() for task in tasks)
        finally:
            for one in (stop, together, *tasks):
                one.cancel()
            await asyncio.wait([together, *tasks], timeout=_INTERRUPT_TIME)

    async def _run_call(self, call: ToolCall) -> bool:
        """Run a call and log its answer; whether it could be run."""
        try:
            given = self._toolbox.check(call)
        except ToolError as bad:
            refused = answer("error", "bad_call", "call again with valid arguments", message=str(bad))
            self._answer(call, ToolOutcome.of(refused, is_invalid=True))
            return False
        process = self._toolbox.process_id(call)
        self._append("tool_start", call=call.id, name=call.name, process=process)
        shown = {"call": call.id, "name": call.name}
        self._events.shown("tui.tool.start", **shown, arguments=call.arguments[:LONGEST_TEXT], process=process)
        failpoints.reach("agent-call-logged")
        async with self._events.progress(**shown, process=process):
            outcome = await self._toolbox.run(call, given, process)
        failpoints.reach("agent-call-run")
        self._answer(call, outcome)
        failpoints.reach("agent-result-logged")
        return True

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

    # The log, and its length.

    async def _compact_if_full(self) -> None:
        """Raises ModelFailed, TurnInterrupted."""
        used = compaction.tokens_of(self._log.branch())
        if self._must_compact or used > _FULL * self._config.context_tokens:
            fields = await compaction.compact(self._log.branch(), self._client, lambda asked: self._ask(asked, []))
            self._append("compaction", **fields)
            self._must_compact = False

    def _append(self, kind: Kind, **content: Any) -> LogEntry:
        entry = self._log.append(kind, **content)
        self._events.kept("agent.step", entry=entry.id, kind=kind)
        return entry
