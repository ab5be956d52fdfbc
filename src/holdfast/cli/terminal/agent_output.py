"""What an agent does, for a terminal or for programs. Control characters of others never reach the terminal."""

from __future__ import annotations

import json
import sys
from typing import Any, Literal

from holdfast.agent import conversation
from holdfast.agent.conversation import ToolCall
from holdfast.cli import colours, console
from holdfast.session_log import LogEntry

Mode = Literal["text", "quiet", "json", "chat"]

#: Ends of turns that an entry before them has said already, or that need no word.
_SAID_REASONS = ("done", "error", "interrupted")
_MAIN_ARGUMENT = ("title", "command", "path", "pattern", "action", "session_id")


class AgentOutput:
    """Writes the entries of a session, each once; text that is streamed is written as it comes."""

    def __init__(self, mode: Mode, session: str) -> None:
        self._mode = mode
        self._session = session
        #: What has come of the answer that is streamed, how much of it is written, and the entry that it will be.
        self._received = ""
        self._written = 0
        self._streamed_entry = 0
        self._last = 0
        self._text = ""
        self._error: dict[str, Any] | None = None
        #: Inputs that were typed here.
        self.own: set[str] = set()

    def event(self, event: dict[str, Any]) -> None:
        """An event of the agent that is not kept."""
        entry = event.get("entry")
        if self._mode not in ("text", "chat") or not isinstance(entry, int) or entry <= self._last:
            return
        if event.get("type") == "tui.message.delta":
            if entry != self._streamed_entry:
                self._received, self._written, self._streamed_entry = "", 0, entry
            self._received += str(event.get("text"))
            self._show_streamed()
        elif event.get("type") == "tui.error" and event.get("retry_in") is not None:
            self._drop_streamed()
            self._say(f"{event.get('message')}; again in {event['retry_in']} s", colours.YELLOW)

    def _show_streamed(self) -> None:
        """Once all entries before it are shown. In a conversation whole lines: the prompt is below them."""
        if self._streamed_entry != self._last + 1:
            return
        upto = len(self._received) if self._mode == "text" else self._received.rfind("\n") + 1
        if upto > self._written:
            self._write(self._received[self._written : upto])
            self._written = upto

    def entry(self, entry: LogEntry) -> None:
        self._last = entry.id
        if self._mode == "json":
            self._as_json(entry)
        elif entry.kind == "assistant":
            self._text = str(entry.content.get("text") or "") or self._text
            if self._mode != "quiet":
                self._answer(entry)
        elif entry.kind == "error":
            self._error = entry.content
            if self._mode == "chat":
                self._say(f"{entry.content.get('message')}. Next: {entry.content.get('next')}", colours.RED)
        elif self._mode != "quiet":
            self._other(entry)
        if self._mode in ("text", "chat"):
            self._show_streamed()

    def finish(self, entry: LogEntry) -> int:
        """The end of the turn: the exit code of the command."""
        reason = entry.content.get("reason")
        if self._mode == "quiet":
            console.out(console.visible_lines(self._text))
        sys.stdout.flush()
        if reason == "interrupted":
            return 130
        if reason == "done":
            return 0
        error = self._error or {"message": f"the turn was given up: {reason}", "next": "holdfast agent --resume"}
        console.say(f"{error.get('message')}. Next: {error.get('next')}", colours.RED)
        return 125

    def _answer(self, entry: LogEntry) -> None:
        text = str(entry.content.get("text") or "")
        streamed = self._received[: self._written] if self._streamed_entry == entry.id else ""
        rest = text[len(streamed) :] if text.startswith(streamed) else f"\n{text}"
        self._write(rest if not text or text.endswith("\n") else f"{rest}\n")
        self._received, self._written, self._streamed_entry = "", 0, 0
        calls = conversation.calls_of(entry)
        if not text and not calls:
            self._say_dim(conversation.NOTHING_SAID)
        for call in calls:
            self._say_dim(f"▸ {call.name}  {brief(call)}")

    def _other(self, entry: LogEntry) -> None:
        content = entry.content
        if entry.kind == "tool_result" and (content.get("is_error") or content.get("status") == "interrupted"):
            self._say_dim(f"  {content.get('status')}: {_reason(str(content.get('text')))}")
        elif entry.kind == "notice":
            head = conversation.notice_head(str(content.get("text")))
            icon, colour = ("✗", colours.RED) if conversation.is_failure(head) else ("●", colours.CYAN)
            self._say(f"{icon} {head}", colour)
        elif entry.kind == "user" and self._mode == "chat" and content.get("input") not in self.own:
            self._say(f"you: {content.get('text')}", colours.BOLD)
        elif entry.kind == "interrupt":
            self._drop_streamed()
            self._say_dim("interrupted")
        elif entry.kind == "compaction":
            self._say_dim(str(content.get("why") or "the conversation was compacted"))
        elif entry.kind == "end" and self._mode == "chat" and content.get("reason") not in _SAID_REASONS:
            self._say_dim(f"the turn ended: {content.get('reason')}")

    def _as_json(self, entry: LogEntry) -> None:
        common = {"session": self._session, "entry": entry.id, "time": entry.time}
        content = entry.content
        rows: list[dict[str, Any]] = []
        match entry.kind:
            case "user":
                rows = [{"type": "message", "role": "user", "text": content.get("text")}]
            case "assistant":
                said = {"type": "message", "role": "assistant", "text": content.get("text")}
                calls = conversation.calls_of(entry)
                rows = [{**said, "usage": content.get("usage")}] if content.get("text") or not calls else []
                rows += [{"type": "tool_call", **call._asdict()} for call in calls]
            case "tool_result":
                names = ("name", "status", "is_error", "text")
                rows = [{"type": "tool_result", "id": content.get("call"), **{key: content.get(key) for key in names}}]
            case "notice":
                names = ("notice", "key", "process", "text")
                rows = [{"type": "notice", "kind": content.get("about"), **{key: content.get(key) for key in names}}]
            case "error":
                self._error = content
            case "end":
                error = {"error": self._error.get("message")} if self._error else {}
                rows = [{"type": "end", "reason": content.get("reason"), **error}]
        for row in rows:
            sys.stdout.write(f"{json.dumps({**row, **common}, ensure_ascii=False)}\n")
        sys.stdout.flush()

    def _drop_streamed(self) -> None:
        if self._written and not self._received[: self._written].endswith("\n"):
            self._write("\n")
        self._received, self._written, self._streamed_entry = "", 0, 0

    def _write(self, text: str) -> None:
        sys.stdout.write(console.visible_lines(text))
        sys.stdout.flush()

    def _say_dim(self, text: str) -> None:
        self._say(text, colours.DIM)

    def _say(self, text: str, colour: str) -> None:
        stream, fd = (sys.stdout, 1) if self._mode == "chat" else (sys.stderr, 2)
        try:
            stream.write(f"{colours.paint(console.brief(console.visible(text), 400), colour, fd)}\n")
            stream.flush()
        except OSError:
            return


def brief(call: ToolCall) -> str:
    """The arguments of a call in one line."""
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return console.brief(call.arguments, 100)
    words = [str(given[name]) for name in _MAIN_ARGUMENT if given.get(name)]
    more = " (background)" if given.get("background") else ""
    return console.brief(" ".join(words) or ", ".join(map(str, given)), 120) + more


def _reason(text: str) -> str:
    try:
        made = json.loads(text)
    except (ValueError, RecursionError):
        return console.brief(text, 200)
    if not isinstance(made, dict):
        return console.brief(text, 200)
    return console.brief(str(made.get("message") or made.get("note") or made.get("reason")), 200)
