"""An agent in a hundred lines, with any service that speaks OpenAI's chat completions.

    OPENAI_BASE_URL=… OPENAI_API_KEY=… OPENAI_MODEL=… python examples/openai_loop.py "run the tests; tidy up meanwhile"

The model works on while its jobs run in the background. Notifications come with the next answer of a tool. Once the
model has nothing left to do, the loop waits for the next notification and passes it to the model.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.request
import uuid
from typing import Any

import holdfast
from holdfast.tools import AsyncTools, openai_schemas

Message = dict[str, Any]

RULES = "You work in a terminal. Start what takes long in the background, and go on with something else."


async def main(prompt: str) -> None:
    session = os.environ.get("HOLDFAST_SESSION") or f"loop-{uuid.uuid4().hex[:12]}"
    messages: list[Message] = [{"role": "system", "content": RULES}, {"role": "user", "content": prompt}]
    async with AsyncTools(session) as tools, holdfast.aconnect(session) as hf:
        while True:
            sys.stdout.write(f"{await work(messages, tools)}\n")
            notices = await next_notices(hf)
            if not notices:
                return
            messages.append({"role": "user", "content": notices})


async def work(messages: list[Message], tools: AsyncTools) -> str:
    """Let the model go on until it has nothing left to do; what it says then."""
    while True:
        reply = await complete(messages)
        messages.append(reply)
        if not reply.get("tool_calls"):
            return str(reply.get("content") or "")
        for call in reply["tool_calls"]:
            function = call["function"]
            answer = await tools.call(function["name"], function["arguments"])  # never raises; has pending notices
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": answer})


async def next_notices(hf: holdfast.AsyncClient) -> str:
    """The text of the next notifications, as soon as there are any; empty when none can come any more."""
    while True:
        notices = await hf.inbox(session=hf.session, wait=0.0 if not await awaited(hf) else 10.0, take=True)
        if notices:
            await hf.ack(*notices)
            return "\n\n".join(notice.text for notice in notices)
        if not await awaited(hf):
            return ""


async def awaited(hf: holdfast.AsyncClient) -> bool:
    """Whether a process runs that may still notify."""
    running = await hf.ps(session=hf.session, used=False)
    return any(process.notify != "never" or process.watch for process in running)


async def complete(messages: list[Message]) -> Message:
    """The model's next message."""
    asked = {"model": os.environ.get("OPENAI_MODEL", "gpt-5"), "messages": messages, "tools": openai_schemas()}
    base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
    request = urllib.request.Request(f"{base}/chat/completions", json.dumps(asked).encode(), headers)
    answer = await asyncio.to_thread(_fetched, request)
    reply: Message = answer["choices"][0]["message"]
    return reply


def _fetched(request: urllib.request.Request) -> Message:
    with urllib.request.urlopen(request, timeout=600) as response:
        answer: Message = json.load(response)
        return answer


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "Say what directory this is."))
