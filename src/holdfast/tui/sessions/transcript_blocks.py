"""A conversation as blocks to draw: what was said, calls of tools with their answers, notices. No I/O."""

from __future__ import annotations

import json
from typing import Any

from holdfast.agent.conversation import NOTHING_SAID, PLAN, TokenUsage, ToolCall, calls_of, is_failure, notice_head
from holdfast.session_log import LogEntry

_MAIN_ARGUMENTS = ("title", "command", "path", "pattern", "action", "session_id")
#: Parts of an answer that say nothing more to people.
_FOR_THE_MODEL = ("next", "is_error")
#: The log has all of it.
_LONGEST_RESULT = 8000
_LONGEST_HEAD = 300


class TranscriptBlock:
    """`kind`: user, agent, tool, plan, notice, error, system. A folded one shows its `head`. `is_draft`: more comes."""

    def __init__(self, kind: str, head: str = "", text: str = "", status: str = "") -> None:
        self.kind = kind
        self.head = head
        self.text = text
        self.status = status
        self.is_folded = kind in ("tool", "notice")
        self.is_draft = False


def call_text(call: ToolCall) -> str:
    """A call in one line: `terminal  pytest -q (background)`."""
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return f"{call.name}  {call.arguments[:_LONGEST_HEAD]}"
    main = [str(given[name])[:_LONGEST_HEAD] for name in _MAIN_ARGUMENTS if given.get(name)]
    shown = " ".join(main[:2]) or ", ".join(f"{name}={value}"[:80] for name, value in given.items())
    return f"{call.name}  {shown}{' (background)' if given.get('background') else ''}"


def result_text(text: str) -> str:
    """The answer of a tool for people: what it printed, then what else is known, a line each."""
    try:
        given = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return text
    output = str(given.pop("output", "") or "").rstrip("\n")
    facts = [f"{name}: {value}" for name, value in given.items() if name not in _FOR_THE_MODEL]
    return "\n".join([*([output] if output else []), *facts])


class ConversationBlocks:
    """The blocks in their order. Each entry of the log is shown once; a draft is replaced by its entry."""

    def __init__(self) -> None:
        self.blocks: list[TranscriptBlock] = []
        self._tools: dict[str, TranscriptBlock] = {}
        self._drafts: dict[int, TranscriptBlock] = {}
        self._sending: list[TranscriptBlock] = []
        #: Of this turn, where the agent is another program.
        self._plan: TranscriptBlock | None = None
        self._is_program = False
        self.last_entry = 0
        self.model = ""
        self.used = TokenUsage()

    def add(self, entry: LogEntry) -> None:
        if entry.id <= self.last_entry:
            return
        self.last_entry = entry.id
        self.used = self.used.plus(entry)
        content = entry.content
        self._drop_drafts(entry.id)
        match entry.kind:
            case "user":
                self._drop_sending(str(content.get("text")))
                self._put(TranscriptBlock("user", text=str(content.get("text") or "")))
                self._plan = None
            case "assistant":
                calls = calls_of(entry)
                if content.get("text"):
                    self._put(TranscriptBlock("agent", text=str(content["text"])))
                elif not calls and not self._is_program:
                    self._put(TranscriptBlock("system", text=NOTHING_SAID))
                for call in calls:
                    is_plan = self._is_program and call.name == PLAN
                    block = TranscriptBlock("plan" if is_plan else "tool", call_text(call), status="…")
                    self._tools[call.id] = block
                    self._put(block)
                    if is_plan:
                        self._replace_plan(block)
            case "tool_start":
                self._set_tool(content, "running")
            case "tool_result":
                self._set_tool(content, "failed" if content.get("is_error") else str(content.get("status") or "done"))
            case "notice":
                text = str(content.get("text") or "")
                head = notice_head(text)
                self._put(TranscriptBlock("notice", head, text, "failed" if is_failure(head) else ""))
            case _:
                self._add_system(entry)

    def _add_system(self, entry: LogEntry) -> None:
        content = entry.content
        match entry.kind:
            case "settings":
                self.model = str(content.get("model") or "")
                self._is_program = bool(content.get("acp"))
            case "error":
                next_step = f". Next: {content['next']}" if content.get("next") else ""
                self._put(TranscriptBlock("error", text=f"{content.get('message')}{next_step}"))
            case "interrupt":
                self._put(TranscriptBlock("system", text="interrupted"))
            case "compaction":
                self._put(TranscriptBlock("system", text=str(content.get("why") or "the conversation was compacted")))
            case "end" if content.get("reason") not in ("done", "error", "interrupted"):
                self._put(TranscriptBlock("system", text=f"the turn ended: {content.get('reason')}"))
            case _:
                pass

    def _set_tool(self, content: dict[str, Any], status: str) -> None:
        block = self._tools.get(str(content.get("call")))
        if block is not None:
            block.status = status
            if content.get("title"):
                block.head = f"{content.get('name')}  {str(content['title'])[:_LONGEST_HEAD]}"
            if "text" in content:
                block.text = result_text(str(content["text"]))[:_LONGEST_RESULT]
                self._tools.pop(str(content.get("call")), None)

    def _replace_plan(self, block: TranscriptBlock) -> None:
        """Each is the whole plan: the one before it goes."""
        if self._plan in self.blocks:
            self.blocks.remove(self._plan)
        self._plan = block

    def _put(self, block: TranscriptBlock) -> None:
        """Before what is being written or sent: that is not in the log yet."""
        self.blocks.insert(len(self.blocks) - len(self._sending) - len(self._drafts), block)

    # What is not in the log yet.

    def delta(self, entry: int, text: str, kind: str = "agent") -> None:
        """A piece of an answer that is being written."""
        if entry <= self.last_entry:
            return
        if entry not in self._drafts:
            made = TranscriptBlock(kind)
            made.is_draft = True
            self.blocks.insert(len(self.blocks) - len(self._sending), made)
            self._drafts[entry] = made
        self._drafts[entry].text += text

    def restart_draft(self, entry: int) -> None:
        """The model is asked again: what it wrote before does not count."""
        if (block := self._drafts.pop(entry, None)) is not None:
            self.blocks.remove(block)

    def sending(self, text: str) -> TranscriptBlock:
        """A message that is on its way."""
        block = TranscriptBlock("user", text=text, status="sending…")
        self._sending.append(block)
        self.blocks.append(block)
        return block

    def drop(self, block: TranscriptBlock) -> None:
        if block in self._sending:
            self._sending.remove(block)
            self.blocks.remove(block)

    def _drop_sending(self, text: str) -> None:
        for block in self._sending:
            if block.text == text:
                self.drop(block)
                return

    def _drop_drafts(self, upto: int) -> None:
        for entry in [entry for entry in self._drafts if entry <= upto]:
            self.blocks.remove(self._drafts.pop(entry))
