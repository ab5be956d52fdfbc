"""A session log in other formats: messages of OpenAI, Markdown, ATIF (Agent Trajectory Interchange Format). No I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.agent import conversation
from holdfast.session_log import LogEntry
from holdfast.version import VERSION

ATIF_VERSION = "ATIF-v1.8"
_LONGEST_RESULT = 4000


def openai(entries: Sequence[LogEntry]) -> str:
    """The whole conversation as a JSON array of messages."""
    return json.dumps(conversation.messages(entries, whole=True), ensure_ascii=False, indent=1)


def markdown(entries: Sequence[LogEntry], session: str) -> str:
    """For people: messages, calls and their answers in short."""
    parts = [f"# {_flat(session)}"]
    for entry in entries:
        text = str(entry.content.get("text") or "")
        match entry.kind:
            case "user":
                parts.append(f"## User, {_date(entry)}\n\n{text}")
            case "assistant":
                calls = [
                    f"**{_flat(call.name)}**\n\n{_fenced(call.arguments)}" for call in conversation.calls_of(entry)
                ]
                parts.append("\n\n".join([f"## Agent, {_date(entry)}", *([text] if text else []), *calls]))
            case "tool_result":
                cut = text[:_LONGEST_RESULT]
                left = f"\n\n({len(text)} characters)" if len(text) > len(cut) else ""
                parts.append(f"Answer of {_flat(str(entry.content.get('name')))}:\n\n{_fenced(cut)}{left}")
            case "notice":
                parts.append(f"## Notice, {_date(entry)}\n\n{_fenced(text)}")
            case "compaction":
                parts.append(f"## Compacted, {_date(entry)}\n\n{_fenced(str(entry.content.get('summary')))}")
            case "error":
                parts.append(f"**Error**: {_flat(str(entry.content.get('message')))}")
            case "interrupt":
                parts.append("*Interrupted.*")
            case _:
                continue
    return "\n\n".join(parts) + "\n"


def _fenced(text: str) -> str:
    """As a code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in text.replace("\n", " ").split() if set(run) == {"`"}), default=0)
    while "`" * (longest + 1) in text:
        longest += 1
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _date(entry: LogEntry) -> str:
    return datetime.fromtimestamp(entry.time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def atif(entries: Sequence[LogEntry], session: str) -> dict[str, Any]:
    """The conversation as one document of ATIF. Notices are steps of the system."""
    settings = next((entry.content for entry in reversed(entries) if entry.kind == "settings"), dict[str, Any]())
    results: dict[str, LogEntry] = {}
    for entry in entries:
        if entry.kind == "tool_result":
            results.setdefault(str(entry.content.get("call")), entry)
    steps: list[dict[str, Any]] = []
    system: object = None
    for entry in entries:
        if entry.kind == "settings" and entry.content.get("system") != system:
            system = entry.content.get("system")
            steps.append(_step(steps, entry, "system", str(system or "")))
        elif entry.kind in ("user", "notice", "compaction", "error"):
            source = "user" if entry.kind == "user" else "system"
            found = [entry.content[name] for name in ("text", "summary", "message") if name in entry.content]
            steps.append(_step(steps, entry, source, str(found[0] if found else ""), kind=entry.kind))
        elif entry.kind == "assistant":
            steps.append(_agent_step(steps, entry, results))
    used = conversation.usage_of(entries)
    totals = {
        "total_prompt_tokens": used.input_tokens,
        "total_completion_tokens": used.output_tokens,
        "total_cached_tokens": used.cached_tokens,
        **({"total_cost_usd": used.cost} if used.cost is not None else {}),
        "total_steps": len(steps),
    }
    agent = {"name": "holdfast", "version": VERSION}
    if settings.get("model"):
        agent["model_name"] = settings["model"]
    return {
        "schema_version": ATIF_VERSION,
        "session_id": session,
        "agent": agent,
        "steps": steps,
        "final_metrics": totals,
    }


def _step(steps: list[dict[str, Any]], entry: LogEntry, source: str, message: str, **extra: Any) -> dict[str, Any]:
    time = datetime.fromtimestamp(entry.time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    step = {"step_id": len(steps) + 1, "timestamp": time, "source": source, "message": message}
    return {**step, "extra": {"entry": entry.id, **extra}}


def _agent_step(steps: list[dict[str, Any]], entry: LogEntry, results: dict[str, LogEntry]) -> dict[str, Any]:
    content, calls = entry.content, conversation.calls_of(entry)
    step = _step(steps, entry, "agent", str(content.get("text") or ""))
    if content.get("model"):
        step["model_name"] = content["model"]
    if content.get("reasoning"):
        step["reasoning_content"] = content["reasoning"]
    if calls:
        step["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": _arguments(call.arguments)}
            for call in calls
        ]
        answered = [(call.id, results[call.id]) for call in calls if call.id in results]
        step["observation"] = {
            "results": [{"source_call_id": chosen, "content": str(one.content.get("text"))} for chosen, one in answered]
        }
    if used := content.get("usage"):
        names = {"input": "prompt_tokens", "output": "completion_tokens", "cached": "cached_tokens", "cost": "cost_usd"}
        step["metrics"] = {names[key]: used[key] for key in names if used.get(key) is not None}
    return step


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"invalid_json": text}
