"""How the services of models are spoken to: as much of each protocol as agent clients need."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.integrations.scripted import Call, Say

Body = dict[str, Any]
Answer = Callable[[Body], "tuple[Say | Call, str]"]
Reply = tuple[int, str, bytes]

_numbers = itertools.count(1)


def tool_names(body: Body) -> list[str]:
    """Of the tools that the request offers. One of a namespace is named `namespace/name`."""
    return [name for tool in body.get("tools") or () for name in _names(tool)]


def _names(tool: Body) -> Iterator[str]:
    if tool.get("type") == "namespace":
        yield from (f"{tool['name']}/{one['name']}" for one in tool["tools"])
    else:
        yield str(tool.get("name") or tool.get("function", {}).get("name") or "")


def reply(path: str, body: Body, answer: Answer) -> Reply:
    if path.endswith("/count_tokens"):
        return _json({"input_tokens": 1000})
    if path.endswith("/messages"):
        return _messages(body, *answer(body))
    if path.endswith("/responses"):
        return _responses(*answer(body))
    if path.endswith("/chat/completions"):
        return _completions(*answer(body))
    return 404, "application/json", b'{"error":{"type":"not_found_error","message":"not here"}}'


def _json(value: object) -> Reply:
    return 200, "application/json", json.dumps(value).encode()


def _stream(events: list[Body]) -> Reply:
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return 200, "text/event-stream", text.encode()


def _messages(body: Body, act: Say | Call, name: str) -> Reply:
    """Anthropic's messages."""
    number = next(_numbers)
    head: Body = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model")}
    usage = {"input_tokens": 10, "output_tokens": 10}
    stop = "tool_use" if name else "end_turn"
    if name:
        block: Body = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": _arguments(act)}
    else:
        block = {"type": "text", "text": _text(act)}
    if not body.get("stream"):
        return _json({**head, "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage})
    if name:
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    begun = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    return _stream(
        [
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
    )


def _responses(act: Say | Call, name: str) -> Reply:
    """OpenAI's responses, as a stream."""
    number = next(_numbers)
    if name:
        space, _, short = name.rpartition("/")
        item: Body = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": short}
        item |= {"arguments": json.dumps(_arguments(act)), **({"namespace": space} if space else {})}
    else:
        text = {"type": "output_text", "text": _text(act), "annotations": []}
        item = {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": [text]}
    usage = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}
    usage_details: Body = {"input_tokens_details": None, "output_tokens_details": None}
    head = {"id": f"resp_{number}"}
    return _stream(
        [
            {"type": "response.created", "response": head},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {**head, "output": [item], "usage": usage | usage_details}},
        ]
    )


def _completions(act: Say | Call, name: str) -> Reply:
    """OpenAI's chat completions."""
    number = next(_numbers)
    message: Body = {"role": "assistant", "content": None if name else _text(act)}
    if name:
        function = {"name": name, "arguments": json.dumps(_arguments(act))}
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if name else "stop"}
    return _json({"id": f"chatcmpl_{number}", "object": "chat.completion", "model": "scripted", "choices": [choice]})


def _arguments(act: Say | Call) -> Body:
    return dict(getattr(act, "arguments", {}))


def _text(act: Say | Call) -> str:
    return str(getattr(act, "text", ""))
