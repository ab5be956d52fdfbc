"""The agent's loop: ask the model, run its calls, go on; between two steps the user's messages and notices enter.

Every step is in the session log before it is acted on. A killed agent goes on from there: `recover` answers the calls
that were under way, and runs none of them again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from holdfast.agent import compaction, conversation
from holdfast.agent.announcer import LONGEST_TEXT
from holdfast.agent.config import AgentConfig
from holdfast.agent.conversation import ToolCall
from holdfast.agent.model_client import Draft, ModelAnswer, ModelClient, ModelFailed
from holdfast.agent.prompts import system_prompt
from holdfast.agent.session_agent import INTERRUPT_TIME, SessionAgent, TurnInterrupted
from holdfast.agent.toolbox import Toolbox, ToolError, ToolOutcome, groups
from holdfast.client.aio import AsyncClient
from holdfast.errors import HoldfastError
from holdfast.session_log import SessionLog
from holdfast.tools.aio import AsyncTools
from holdfast.tools.answers import answer
from holdfast_keeper import failpoints

#: A turn ends after so many steps in a row in which no call could be run.
_MOST_INVALID = 5
#: A conversation that fills this share of the context is compacted.
_FULL = 0.8


class Agent(SessionAgent):
    """The agent of a session that asks a model."""

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
        super().__init__(log, client, config, since)
        self._tools = tools
        self._toolbox = toolbox
        self._make_model = make_model
        self._model: ModelClient | None = None

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

    async def _close(self) -> None:
        if self._model is not None:
            await self._model.close()

    async def _turn(self) -> None:
        """Ask the model until it has nothing more to do."""
        self._begin_turn()
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
                self._fail(failed.message, failed.next)
                reason, self._must_compact = "error", False
                self._is_over = self._is_over or failed.is_access  # the next agent has the environment of the user
                break
        self._end_turn(reason)

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
                await asyncio.wait(tasks, timeout=INTERRUPT_TIME)
            if self._interrupt.is_set():
                raise TurnInterrupted
            return sum(task.result() for task in tasks)
        finally:
            for one in (stop, together, *tasks):
                one.cancel()
            await asyncio.wait([together, *tasks], timeout=INTERRUPT_TIME)

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

    async def _compact_if_full(self) -> None:
        """Raises ModelFailed, TurnInterrupted."""
        used = compaction.tokens_of(self._log.branch())
        if self._must_compact or used > _FULL * self._config.context_tokens:
            fields = await compaction.compact(self._log.branch(), self._client, lambda asked: self._ask(asked, []))
            self._append("compaction", **fields)
            self._must_compact = False
