"""The agent of a session whose turns another program does: one that speaks the Agent Client Protocol (ACP).

The program is a child of this process. Messages and notices of the session are prompts for it; what it reports goes
into the session log as that of a model does. It does its calls by itself: each is logged when the program reports it.
Its life is in `session.py`, what it reports in `reports.py`, what it asks for in `requests.py`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from holdfast.agent import compaction, conversation
from holdfast.agent.acp.reports import AcpReports
from holdfast.agent.acp.requests import AcpRequests
from holdfast.agent.acp.session import AcpSession, LoginNeeded
from holdfast.agent.config import AcpChoice, AgentConfig
from holdfast.agent.session_agent import SessionAgent, TurnInterrupted
from holdfast.agent.toolbox import ToolOutcome
from holdfast.client.aio import AsyncClient
from holdfast.errors import BadValue, HoldfastError
from holdfast.integrations.acp.messages import Message
from holdfast.session_log import LogEntry, SessionLog
from holdfast_keeper import failpoints

_LONGEST_SUMMARY = 8000
_LONGEST_PIECE = 1500

RESTARTED = """\
[The system restarted you while you worked on the message below. A part of it may be done already, and a call that was \
under way may have taken effect: check before you repeat anything. Terminals that you had open were ended.]"""
FORGOTTEN = "the program could not load its earlier session: it goes on with a summary"


class AcpAgent(SessionAgent):
    """`named` is what the user chose, `choice` the program that this means."""

    def __init__(
        self,
        log: SessionLog,
        client: AsyncClient,
        config: AgentConfig,
        choice: AcpChoice,
        named: str,
        since: int | None,
    ) -> None:
        super().__init__(log, client, config, since)
        self._choice = choice
        self._named = named
        self._reports = AcpReports(log, self._events, self._append, self._answer, choice.name)
        self._requests = AcpRequests(client, config, self._reports, choice.name, str(log.path))
        self._session = AcpSession(client, choice, self._requests.serve, self._reports.take)

    async def recover(self) -> None:
        """The program of an agent that died is gone, and with it who reads its terminals."""
        with suppress(HoldfastError):  # they are ended before the program is started
            await self._requests.end_left_terminals()
        await super().recover()

    async def _close(self) -> None:
        await self._session.close()
        await self._requests.close()

    # Settings.

    def _set(self, seq: int | None = None, **changes: str | None) -> None:
        if changes:
            raise BadValue(f"{self._choice.name} has settings of its own", next="change them in the program")
        self._note(seq=seq)

    def _note(self, seq: int | None = None, **changes: Any) -> None:
        """Log the settings, where they differ."""
        before = self._settings
        now = {
            "model": self._choice.name,
            "acp": self._named,
            "cwd": before.get("cwd") or os.getcwd(),
            "acp_session": before.get("acp_session"),
            "prompted": before.get("prompted", 0),
            **changes,
        }
        if seq is not None or any(before.get(key) != value for key, value in now.items()):
            self._append("settings", **now, tools=[], seq=seq if seq is not None else self._since)

    @property
    def _cwd(self) -> str:
        """A session of the program belongs to its directory."""
        found = str(self._settings.get("cwd") or "")
        return found if os.path.isdir(found) else os.getcwd()

    # A turn.

    async def _turn(self) -> None:
        self._begin_turn()
        if self._must_compact:
            self._must_compact = False
            self._fail(f"{self._choice.name} compacts its conversation by itself", "go on; it needs no command")
        reason = "done"
        while conversation.is_open(self._log.branch()):
            try:
                reason = await self._guarded(self._prompted())
                break
            except TurnInterrupted:
                await self._session.cancel()
                self._reports.flush(is_partial=True)
                self._skip_open_calls()
                self._append("interrupt")
                if not self._take_inputs() or self._is_over:
                    reason = "interrupted"
                    break
            except HoldfastError as failed:
                self._reports.flush(is_partial=True)
                self._skip_open_calls()
                self._fail(failed.message, failed.next)
                reason = "error"
                if isinstance(failed, LoginNeeded):
                    self._is_over = True  # the next agent has the environment of the user
                break
        self._end_turn(reason)

    async def _prompted(self) -> str:
        """Send what is new, and wait for the end of the turn: its reason. Raises HoldfastError."""
        summary = [] if self._session.is_open else await self._open()
        text = "\n\n".join([*summary, *(str(entry.content["text"]) for entry in self._new_entries())])
        self._note(prompted=self._log.head, acp_session=self._session.id)
        failpoints.reach("agent-prompt-logged")
        self._reports.begin(self._session.id)
        try:
            answer = await self._session.prompt(text)
        finally:
            self._reports.end()
        self._reports.flush(usage=_usage(answer))
        for open_call in conversation.open_calls(self._log.branch()):
            self._answer(open_call.call, ToolOutcome("the program reported no result", "ended", is_error=False))
        return self._reason(str(answer.get("stopReason")))

    async def _open(self) -> list[str]:
        """Start the program: what it has to be given before the prompt. Raises HoldfastError."""
        await self._requests.end_left_terminals()
        known = str(self._settings.get("acp_session") or "")
        is_known = await self._session.open(known, self._cwd)
        self._requests.use_directory(self._session.id, self._cwd)
        if is_known or not known:
            return []
        summary = await self._summary()
        self._append("compaction", summary=summary, first_kept=None, why=FORGOTTEN)
        return [summary]

    async def _summary(self) -> str:
        """For a program that has lost its session."""
        new = {entry.id for entry in self._new_entries()}
        parts = [_in_summary(entry) for entry in self._log.branch() if entry.id not in new]
        shown = "\n".join(part for part in parts if part)[-_LONGEST_SUMMARY:]
        head = "[The system restarted you, and your earlier session could not be loaded. The conversation, shortened:]"
        return "\n\n".join([head, shown, await compaction.live_processes(self._client), "[What follows is new.]"])

    def _reason(self, stop: str) -> str:
        reasons = {"end_turn": "done", "cancelled": "interrupted", "max_turn_requests": "max_steps"}
        if stop in reasons:
            return reasons[stop]
        texts = {"refusal": "refused to go on", "max_tokens": "reached its limit of tokens"}
        what = texts.get(stop, f"stopped: {stop[:80]}")
        self._fail(f"{self._choice.name} {what}", "send another message")
        return "error"

    def _new_entries(self) -> list[LogEntry]:
        """What was not sent yet; after a crash in the middle of a turn, all of that turn."""
        branch, prompted = self._log.branch(), int(self._settings.get("prompted") or 0)
        asked = [entry for entry in branch if entry.kind in ("user", "notice")]
        if new := [entry for entry in asked if entry.id > prompted]:
            return new
        ended = max((entry.id for entry in branch if entry.kind in ("end", "interrupt")), default=0)
        note = LogEntry(0, None, 0.0, "user", {"text": RESTARTED})
        return [note, *(entry for entry in asked if entry.id > ended)]


def _usage(answer: Message) -> Message | None:
    found = answer.get("usage")
    if not isinstance(found, dict):
        return None
    names = {"inputTokens": "input", "outputTokens": "output", "cachedReadTokens": "cached"}
    return {ours: found[theirs] for theirs, ours in names.items() if isinstance(found.get(theirs), int)} or None


def _in_summary(entry: LogEntry) -> str:
    """An entry in a summary: one line for each thing said."""
    text = " ".join(str(entry.content.get("text") or "").split())[:_LONGEST_PIECE]
    match entry.kind:
        case "user":
            return f"User: {text}"
        case "notice":
            return f"Notice: {text}"
        case "compaction":
            return str(entry.content.get("summary") or "")[-_LONGEST_SUMMARY // 2 :]
        case "assistant":
            calls = [f"You called {call.name} {call.arguments[:200]}" for call in conversation.calls_of(entry)]
            return "\n".join([*([f"You: {text}"] if text else []), *calls])
    return ""
