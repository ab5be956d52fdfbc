"""What a program that speaks ACP reports of its turn: texts, calls and plans, as entries of the session log."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.agent import conversation
from holdfast.agent.announcer import LONGEST_TEXT, Announcer
from holdfast.agent.conversation import ToolCall
from holdfast.agent.toolbox import ToolOutcome
from holdfast.integrations.acp.messages import Message
from holdfast.session_log import LogEntry, SessionLog
from holdfast_keeper import failpoints

#: Of the result of a call, and of what the user is asked.
LONGEST_RESULT = 30_000
LONGEST_TITLE = 1500
#: Steps of a plan that are shown.
_MOST_STEPS = 50
_STEP_MARKS = {"completed": "✓", "in_progress": "●"}


class AcpReports:
    """`append` writes an entry of the session log, `answer` the result of a call. `model` is the program's name."""

    def __init__(
        self,
        log: SessionLog,
        events: Announcer,
        append: Callable[..., LogEntry],
        answer: Callable[[ToolCall, ToolOutcome], None],
        model: str,
    ) -> None:
        self._log = log
        self._events = events
        self._append = append
        self._answer = answer
        self._model = model
        self._session = ""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        #: The calls of this turn, by the program's ids.
        self._calls: dict[str, ToolCall] = {}
        self._contents: dict[str, Any] = {}
        self._titles: dict[str, str] = {}
        self._plan = ""

    def begin(self, session: str) -> None:
        """Reports of this session count from now on: those of one that is being loaded are in the log already."""
        self._session = session
        self._calls.clear()
        self._contents.clear()
        self._titles.clear()
        self._plan = ""
        self._events.shown("tui.message.start", entry=self._log.next_id)

    def end(self) -> None:
        """The program was not asked anything any more."""
        self._session = ""

    def take(self, params: Message) -> None:
        """A `session/update`."""
        update = params.get("update")
        if not self._session or params.get("sessionId") != self._session or not isinstance(update, dict):
            return
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._take_piece("tui.message.delta", self._text, update.get("content"))
            case "agent_thought_chunk":
                self._take_piece("tui.reasoning.delta", self._reasoning, update.get("content"))
            case "tool_call" | "tool_call_update":
                self._take_call(update)
            case "plan":
                self._take_plan(update.get("entries"))
            case _:
                pass

    def take_question(self, call: Message) -> ToolCall | None:
        """The call that the program asks about, where it is known."""
        if self._session:
            self._take_call({**call, "status": "pending"})
        return self._calls.get(str(call.get("toolCallId")))

    def _take_plan(self, entries: Any) -> None:
        """Logged as a call that is over: so every reader of the log can show it. Each is the whole plan."""
        steps = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
        lines = [
            f"{_STEP_MARKS.get(str(one.get('status')), '○')} {' '.join(str(one.get('content') or '').split())[:300]}"
            for one in steps[:_MOST_STEPS]
        ]
        left = len(steps) - len(lines)
        text = "\n".join([*lines, *([f"… {left} more"] if left else [])])
        if not text or text == self._plan:
            return
        self._plan = text
        done = sum(one.get("status") == "completed" for one in steps)
        title = f"{done} of {len(steps)} done"
        call = self._new_call(f"plan-{self._log.next_id}", {"kind": conversation.PLAN, "title": title})
        self._answer(call, ToolOutcome(text, "done", is_error=False))

    def _take_piece(self, topic: str, pieces: list[str], content: Any) -> None:
        if text := _block_text(content):
            pieces.append(text)
            self._events.delta(topic, self._log.next_id, text)

    def _take_call(self, update: Message) -> None:
        """A call of the program: logged when it is first seen, and when it is over."""
        number = update.get("toolCallId")
        if not isinstance(number, str):
            return
        call = self._calls.get(number)
        if call is None:
            call = self._new_call(number, update)
        self._note_title(call, update.get("title"))
        if update.get("content") or update.get("rawOutput") is not None:
            self._contents[number] = update.get("content") or update["rawOutput"]
        if update.get("status") in ("completed", "failed") and _is_open(self._log.branch(), call.id):
            is_error = update["status"] == "failed"
            self.flush()
            text = _content_text(self._contents.pop(number, ""))[:LONGEST_RESULT]
            self._answer(call, ToolOutcome(text, "failed" if is_error else "done", is_error))

    def _note_title(self, call: ToolCall, title: object) -> None:
        """Programs begin a call before they know what it is about."""
        if isinstance(title, str) and title and self._titles.get(call.id) != title:
            is_first = call.id not in self._titles
            self._titles[call.id] = title
            if not is_first:
                self.flush()
                self._append("tool_start", call=call.id, name=call.name, process=None, title=title[:LONGEST_TITLE])

    def _new_call(self, number: str, update: Message) -> ToolCall:
        used = {call.id for entry in self._log.entries for call in conversation.calls_of(entry)}
        chosen = next(name for n in range(len(used) + 1) if (name := f"{number}#{n}" if n else number) not in used)
        given = {"title": str(update.get("title") or "")[:LONGEST_TITLE], "input": update.get("rawInput")}
        name = str(update.get("kind") or "tool")[:64]
        call = ToolCall(chosen, name, json.dumps({key: value for key, value in given.items() if value}))
        self._calls[number] = call
        self.flush(call)
        self._append("tool_start", call=call.id, name=call.name, process=None)
        arguments = call.arguments[:LONGEST_TEXT]
        self._events.shown("tui.tool.start", call=call.id, name=call.name, arguments=arguments, process=None)
        return call

    def flush(self, *calls: ToolCall, usage: Message | None = None, is_partial: bool = False) -> None:
        """Log what was said so far, with the calls that follow it."""
        text, reasoning = "".join(self._text), "".join(self._reasoning)
        self._text.clear()
        self._reasoning.clear()
        if not text and not reasoning and not calls and not usage:
            return
        fields: dict[str, Any] = {"reasoning": reasoning} if reasoning else {}
        fields |= {"usage": usage} if usage else {}
        fields |= {"is_partial": True} if is_partial else {}
        made = [call._asdict() for call in calls]
        entry = self._append("assistant", text=text, calls=made, model=self._model, **fields)
        self._events.shown("tui.message.complete", entry=entry.id)
        failpoints.reach("agent-answer-logged")


def _is_open(entries: Sequence[LogEntry], call: str) -> bool:
    return any(one.call.id == call for one in conversation.open_calls(entries))


def _block_text(content: Any) -> str:
    """Of one block of content."""
    if not isinstance(content, dict):
        return ""
    kind = content.get("type")
    if kind == "text":
        return str(content.get("text") or "")
    if kind == "resource_link":
        return f"[{content.get('name') or content.get('uri')}]"
    resource = content.get("resource")
    if isinstance(resource, dict) and isinstance(resource.get("text"), str):
        return str(resource["text"])
    return f"[{kind}]"


def _content_text(content: Any) -> str:
    """What a call has to show: texts, changes of files, terminals; else what the tool returned."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    parts = []
    for part in content:
        if not isinstance(part, dict):
            continue
        match part.get("type"):
            case "content":
                parts.append(_block_text(part.get("content")))
            case "diff":
                parts.append(_diff(part))
            case "terminal":
                parts.append(f"[terminal {part.get('terminalId')}]")
            case _:
                parts.append(_block_text(part))
    return "\n".join(parts)


def _diff(part: Message) -> str:
    import difflib

    before, after = str(part.get("oldText") or ""), str(part.get("newText") or "")
    path = str(part.get("path"))
    if len(before) + len(after) > LONGEST_RESULT:
        return f"{path}: changed"
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
    return "\n".join(lines)
