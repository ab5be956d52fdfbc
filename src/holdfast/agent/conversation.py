"""The conversation that a session log holds, as messages for a model. No I/O.

The messages of any log are valid: each call of the model is followed by its answer, in the order of the
calls, and nothing stands between them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from holdfast.session_log import LogEntry

Message: TypeAlias = dict[str, Any]

#: For a call without an answer in the log: the agent is running it, or was killed and is not back yet.
UNANSWERED = "[no answer yet]"
#: Kinds after which the model has to be asked.
_OPEN = frozenset({"user", "notice", "tool_result"})
_SILENT = frozenset({"session", "settings", "tool_start", "interrupt", "error", "end"})


#: In the head of a notice that says what went wrong.
_BAD = (" failed", " could not be started", " ran out of memory", " at its deadline", " is lost")
_OF_ONE = re.compile(r"Background process proc_[0-9a-f]+ (.+)")
_LONGEST_WHO = 40
#: For people, in place of an answer without text and calls.
NOTHING_SAID = "the model answered nothing"
#: The name of the call by which another program reports its plan.
PLAN = "plan"


class ToolCall(NamedTuple):
    """A call of the model. `arguments` is the text that it wrote."""

    id: str
    name: str
    arguments: str


def calls_of(entry: LogEntry) -> list[ToolCall]:
    """The calls of an entry of the model."""
    found = entry.content.get("calls")
    calls = found if isinstance(found, list) else []
    return [
        ToolCall(str(one.get("id")), str(one.get("name")), str(one.get("arguments")))
        for one in calls
        if isinstance(one, dict)
    ]


def notice_head(text: str) -> str:
    """A notice in one line for people: of a single process, its name or command and what happened to it."""
    first, *rest = text.split("\n", 3)
    head = first.removeprefix("[IMPORTANT: ").removesuffix("]")
    found = _OF_ONE.fullmatch(head)
    given = dict(line.split(": ", 1) for line in rest[:2] if line.startswith(("Command: ", "Name: ")))
    who = given.get("Name") or given.get("Command")
    if found is None or not who:
        return head
    return f"{who if len(who) <= _LONGEST_WHO else who[: _LONGEST_WHO - 1] + '…'} {found[1]}"


def is_failure(head: str) -> bool:
    """Whether the head of a notice says what went wrong."""
    return any(one in head for one in _BAD)


class TokenUsage(NamedTuple):
    """Sums over a conversation. `cost` is in dollars, None where no price is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    steps: int = 0
    tool_errors: int = 0

    @property
    def text(self) -> str:
        """`12.3k tokens, $0.04`; empty where nothing was counted."""
        count = self.input_tokens + self.output_tokens
        if not count:
            return ""
        shown = f"{count / 1000:,.1f}k" if count >= 1000 else str(count)
        return f"{shown} tokens" + (f", ${self.cost:,.{2 if self.cost >= 1 else 4}f}" if self.cost is not None else "")

    def plus(self, entry: LogEntry) -> TokenUsage:
        """With what an entry of a log used."""
        if entry.kind == "tool_result" and entry.content.get("is_error"):
            return self._replace(tool_errors=self.tool_errors + 1)
        if entry.kind not in ("assistant", "compaction"):
            return self
        used = entry.content.get("usage") or {}
        cost = used.get("cost")
        return TokenUsage(
            self.input_tokens + int(used.get("input") or 0),
            self.output_tokens + int(used.get("output") or 0),
            self.cached_tokens + int(used.get("cached") or 0),
            self.cost if cost is None else (self.cost or 0.0) + float(cost),
            self.steps + 1,
            self.tool_errors,
        )


def usage_of(entries: Iterable[LogEntry]) -> TokenUsage:
    total = TokenUsage()
    for entry in entries:
        total = total.plus(entry)
    return total


def messages(entries: Sequence[LogEntry], whole: bool = False) -> list[Message]:
    """The messages of a branch, from the last compaction on, after the system prompt that is in effect.

    `whole`: all of them, as if there had been no compaction.
    """
    system: Message | None = None
    for entry in entries:
        if entry.kind == "settings" and isinstance(entry.content.get("system"), str):
            system = {"role": "system", "content": entry.content["system"]}
    found: list[Message] = [] if system is None else [system]
    kept = [entry for entry in entries if entry.kind != "compaction"] if whole else _kept(entries)
    for group in _turns(kept):
        found += _group(group)
    return found


def _kept(entries: Sequence[LogEntry]) -> list[LogEntry]:
    """The last compaction, and what it kept."""
    at = next((n for n in reversed(range(len(entries))) if entries[n].kind == "compaction"), None)
    if at is None:
        return list(entries)
    first = entries[at].content.get("first_kept")
    kept = [entry for entry in entries[:at] if isinstance(first, int) and entry.id >= first]
    return [entries[at], *kept, *entries[at + 1 :]]


def _turns(entries: Iterable[LogEntry]) -> list[list[LogEntry]]:
    """An entry of the model with the answers to its calls; each other entry by itself."""
    groups: list[list[LogEntry]] = []
    wanted: dict[str, list[LogEntry]] = {}
    for entry in entries:
        if entry.kind == "tool_result":
            if (group := wanted.pop(str(entry.content.get("call")), None)) is not None:
                group.append(entry)
            continue  # else: an answer to no call, or a second one
        if entry.kind in _SILENT:
            continue
        groups.append([entry])
        if entry.kind == "assistant":
            wanted |= {call.id: groups[-1] for call in calls_of(entry)}
    return groups


def _group(group: list[LogEntry]) -> list[Message]:
    first = group[0]
    text = str(first.content.get("text") or "")
    if first.kind == "assistant":
        return _assistant(first, group[1:])
    if first.kind == "compaction":
        text = str(first.content.get("summary") or "")
    return [{"role": "user", "content": text}] if text else []


def _assistant(entry: LogEntry, answers: list[LogEntry]) -> list[Message]:
    text, calls = entry.content.get("text"), calls_of(entry)
    if not text and not calls:
        return []
    said: Message = {"role": "assistant", "content": text or None}
    if calls:
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _json(call.arguments)}}
            for call in calls
        ]
    texts = {str(answer.content.get("call")): str(answer.content.get("text") or "") for answer in answers}
    answered = [{"role": "tool", "tool_call_id": call.id, "content": texts.get(call.id, UNANSWERED)} for call in calls]
    return [said, *answered]


def _json(arguments: str) -> str:
    """What the model wrote, if it is an object of JSON: many endpoints refuse a conversation with anything else."""
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    return arguments if is_object else json.dumps({"invalid_json": arguments[:2000]})


class OpenCall(NamedTuple):
    """A call without an answer. `process` is the id of its process, where it was about to start one."""

    call: ToolCall
    is_started: bool
    process: str | None


def open_calls(entries: Sequence[LogEntry]) -> list[OpenCall]:
    """The calls of the present turn that are not answered."""
    first = next((n + 1 for n in reversed(range(len(entries))) if entries[n].kind == "end"), 0)
    turn = entries[first:]
    answered = {str(entry.content.get("call")) for entry in turn if entry.kind == "tool_result"}
    started = {str(entry.content.get("call")): entry for entry in turn if entry.kind == "tool_start"}
    found = []
    for call in (call for entry in turn if entry.kind == "assistant" for call in calls_of(entry)):
        if call.id not in answered:
            begun = started.get(call.id)
            found.append(OpenCall(call, begun is not None, begun.content.get("process") if begun is not None else None))
    return found


def is_open(entries: Sequence[LogEntry]) -> bool:
    """Whether the model has to be asked: the last thing said was not said by it, and the turn was not ended."""
    for entry in reversed(entries):
        if entry.kind == "interrupt":
            return False
        if entry.kind in ("end", "assistant"):
            return entry.kind == "assistant" and bool(calls_of(entry))
        if entry.kind in _OPEN:
            return True
    return False
