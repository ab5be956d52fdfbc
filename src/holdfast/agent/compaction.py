"""Compaction: a summary takes the place of a long conversation. What still runs is named in it, from the daemon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.agent import conversation
from holdfast.agent.conversation import Message
from holdfast.agent.model_client import ModelAnswer, ModelFailed
from holdfast.agent.prompts import SUMMARISE
from holdfast.client.aio import AsyncClient
from holdfast.errors import HoldfastError
from holdfast.model.shortening import estimate
from holdfast.session_log import LogEntry
from holdfast.tools.answers import brief_command

#: Of a message that is given to the summary in full, and of an answer of a tool in what is summarised.
_LONGEST_REQUEST = 8000
_LONGEST_ANSWER = 4000


def tokens_of(entries: Sequence[LogEntry]) -> int:
    """About how long the conversation is: what the endpoint counted last, and an estimate of what came since."""
    counted, since = 0, []
    for entry in reversed(entries):
        if entry.kind == "compaction":
            break
        if entry.kind == "assistant" and (used := entry.content.get("usage")):
            counted = int(used.get("input") or 0) + int(used.get("output") or 0)
            break
        since.append(str(entry.content.get("text") or ""))
    return counted + sum(map(estimate, since))


async def compact(
    entries: Sequence[LogEntry], client: AsyncClient, ask: Callable[[list[Message]], Awaitable[ModelAnswer]]
) -> dict[str, Any]:
    """The content of a compaction. Raises ModelFailed; nothing has changed then."""
    asked = [_shortened(message) for message in conversation.messages(entries)]
    made = await ask([*asked, {"role": "user", "content": SUMMARISE}])
    if not made.text.strip():
        raise ModelFailed("the model wrote no summary", next="try again, or begin another session")
    request = next((entry.content["text"] for entry in reversed(entries) if entry.kind == "user"), None)
    parts = [
        "[The conversation so far was compacted by the system. Summary:]",
        made.text.strip(),
        await live_processes(client),
    ]
    if isinstance(request, str):
        parts.append(f"[The last message of the user was:]\n{request[:_LONGEST_REQUEST]}")
    return {"summary": "\n\n".join(parts), "first_kept": None, "usage": made.usage}


def _shortened(message: Message) -> Message:
    content = message.get("content")
    if message["role"] != "tool" or not isinstance(content, str) or len(content) <= _LONGEST_ANSWER:
        return message
    return {**message, "content": f"{content[:_LONGEST_ANSWER]}… [{len(content)} characters]"}


async def live_processes(client: AsyncClient) -> str:
    """The block that names what still runs."""
    try:
        found = await client.ps(session=client.session, used=False)
    except HoldfastError:
        return "[Which processes still run is unknown: process(action='list') shows them.]"
    if not found:
        return "[No process of this session runs.]"
    rows = [f"- {one.id}{f' ({one.name})' if one.name else ''}: {brief_command(one)}" for one in found]
    return "\n".join(["[These processes of this session still run:", *rows[:50], "]"])
