"""Asks a model of any OpenAI-compatible endpoint, with the plain `openai` client: streaming, retries, usage."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.agent.config import AgentConfig
from holdfast.agent.conversation import Message, ToolCall
from holdfast.errors import HoldfastError
from holdfast.extras import install_hint

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_LONGEST_PAUSE = 30.0
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
#: An answer that is longer is cut: no endpoint means it.
_LONGEST_TEXT = 4 << 20
_MOST_CALLS = 64


class ModelFailed(HoldfastError):
    """The model could not be asked. `is_overflow`: the conversation is too long for it; `is_access`: its key is bad."""

    code = "model_failed"

    def __init__(self, message: str, *, next: str, is_overflow: bool = False, is_access: bool = False) -> None:
        super().__init__(message, next=next)
        self.is_overflow = is_overflow
        self.is_access = is_access


class ModelAnswer(NamedTuple):
    """What the model answered. `usage` has input, output, cached and, where known, cost."""

    text: str
    reasoning: str
    calls: list[ToolCall]
    usage: dict[str, Any]
    finish: str | None

    def fields(self) -> dict[str, Any]:
        """As the content of a log entry."""
        made: dict[str, Any] = {"text": self.text, "calls": [call._asdict() for call in self.calls]}
        made |= {"reasoning": self.reasoning} if self.reasoning else {}
        return {**made, "usage": self.usage, "finish": self.finish}


class Draft:
    """An answer while it is streamed."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Nothing came yet."""
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.usage: dict[str, Any] = {}
        self.finish: str | None = None
        self._size = 0
        self._calls: dict[int, dict[str, Any]] = {}

    def take(self, chunk: Any) -> tuple[str, str] | None:
        """What a chunk adds: `text`, `reasoning` or `tool`, and the text of it; None where it adds nothing to show."""
        if (used := getattr(chunk, "usage", None)) is not None:
            self.usage = _usage(used)
        choices = getattr(chunk, "choices", None) or ()
        if not choices:
            return None
        self.finish = choices[0].finish_reason or self.finish
        delta = choices[0].delta
        if delta is None:
            return None
        thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if isinstance(thought, str) and self._fits(thought):
            self.reasoning.append(thought)
            return "reasoning", thought
        if isinstance(delta.content, str) and delta.content and self._fits(delta.content):
            self.text.append(delta.content)
            return "text", delta.content
        named = [self._take_call(one) for one in delta.tool_calls or ()]
        return ("tool", named[0]) if named and named[0] else None

    def _take_call(self, piece: Any) -> str:
        at = piece.index if isinstance(piece.index, int) else len(self._calls)
        call = self._calls.setdefault(at, {"id": None, "name": "", "arguments": []})
        call["id"] = call["id"] or piece.id
        is_new = False
        if piece.function is not None:
            is_new = not call["name"] and bool(piece.function.name)
            call["name"] = call["name"] or piece.function.name or ""
            if piece.function.arguments and self._fits(piece.function.arguments):
                call["arguments"].append(piece.function.arguments)
        return call["name"] if is_new else ""

    def _fits(self, text: str) -> bool:
        self._size += len(text)
        return self._size <= _LONGEST_TEXT

    def answer(self) -> ModelAnswer:
        calls: list[ToolCall] = []
        for at in sorted(self._calls)[:_MOST_CALLS]:
            call = self._calls[at]
            taken = {one.id for one in calls}
            chosen = call["id"] if isinstance(call["id"], str) and call["id"] and call["id"] not in taken else None
            calls.append(ToolCall(chosen or f"call_{secrets.token_hex(8)}", call["name"], "".join(call["arguments"])))
        return ModelAnswer("".join(self.text), "".join(self.reasoning), calls, self.usage, self.finish)


def _usage(used: Any) -> dict[str, Any]:
    details = getattr(used, "prompt_tokens_details", None)
    found = {
        "input": used.prompt_tokens or 0,
        "output": used.completion_tokens or 0,
        "cached": (getattr(details, "cached_tokens", None) or 0) if details is not None else 0,
    }
    cost = getattr(used, "cost", None)
    return {**found, "cost": cost} if isinstance(cost, (int, float)) else found


class ModelClient:
    """One endpoint. Used on one event loop."""

    def __init__(self, config: AgentConfig, base_url: str, key: str | None) -> None:
        try:
            import openai
        except ImportError:
            raise HoldfastError("the package openai is not installed", next=install_hint("agent")) from None
        self._openai = openai
        self._config = config
        self._has_usage = True
        self._client: AsyncOpenAI = openai.AsyncOpenAI(
            base_url=base_url or None,
            api_key=key or "none",  # endpoints of this machine need none
            max_retries=0,
            timeout=openai.Timeout(config.request_timeout, connect=10.0),
        )

    async def close(self) -> None:
        await self._client.close()

    async def ask(
        self,
        model: str,
        messages: list[Message],
        tools: list[dict[str, Any]],
        on_delta: Callable[[str, str], None],
        on_retry: Callable[[str, float], Awaitable[None]],
        draft: Draft,
    ) -> ModelAnswer:
        """The answer to a conversation. `on_delta` gets its pieces; `on_retry` why it is asked again, and when.

        A cancelled call leaves in `draft` what came so far. Raises ModelFailed.
        """
        for attempt in range(self._config.retries + 1):
            draft.reset()
            try:
                return self._priced(await self._once(model, messages, tools, on_delta, draft))
            except Exception as failed:  # noqa: BLE001 - the client raises errors of several libraries
                error, pause = self._judged(failed, attempt)
            if pause is None or attempt == self._config.retries:
                raise error
            await on_retry(error.message, pause)
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _once(
        self,
        model: str,
        messages: list[Message],
        tools: list[dict[str, Any]],
        on_delta: Callable[[str, str], None],
        draft: Draft,
    ) -> ModelAnswer:
        options: dict[str, Any] = {"tools": tools} if tools else {}
        if self._has_usage:
            options["stream_options"] = {"include_usage": True}
        stream: Any = await self._client.chat.completions.create(
            model=model,
            messages=messages,  # type: ignore[arg-type]
            stream=True,
            **options,
        )
        async with stream:
            async for chunk in stream:
                if (piece := draft.take(chunk)) is not None:
                    on_delta(*piece)
        if draft.finish is None and not draft.usage:
            raise ConnectionError("the answer was cut off")
        return draft.answer()

    def _judged(self, failed: Exception, attempt: int) -> tuple[ModelFailed, float | None]:
        """The error, and the seconds until the next attempt; None where another one does not help."""
        openai = self._openai
        delay = min(self._config.retry_delay * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.75, 1.25)
        if not isinstance(failed, openai.APIStatusError):
            what = " ".join(str(failed).split())[:300] or type(failed).__name__
            if isinstance(failed, ValueError):
                what = f"the endpoint sent no chat completion: {what}"
            elif isinstance(failed, openai.APIError) and not isinstance(failed, openai.APIConnectionError):
                what = f"the endpoint failed: {what}"
            else:
                what = f"no answer of the endpoint: {what}"
            return ModelFailed(what, next="check the endpoint: holdfast agent --base-url URL"), delay
        text = str(failed.message).removeprefix(f"Error code: {failed.status_code} - ")
        status, text = failed.status_code, " ".join(text.split())[:300]
        if status == 400 and self._has_usage and "stream_options" in text:
            self._has_usage = False  # an endpoint that does not know it
            return ModelFailed(text, next="try again"), 0.0
        if status in (400, 413) and _is_overflow(failed):
            return ModelFailed("the conversation is too long for the model", next="/compact", is_overflow=True), None
        if status in (401, 403):
            what = f"the endpoint refuses the key ({status}): {text}"
            return ModelFailed(what, next="set OPENAI_API_KEY, or run: holdfast agent --setup", is_access=True), None
        error = ModelFailed(f"the endpoint answered {status}: {text}", next="check model and endpoint")
        if status not in _TRANSIENT_STATUS and status < 500:
            return error, None
        if getattr(failed, "code", None) == "insufficient_quota":
            return error, None
        return error, max(delay, min(_retry_after(failed), 2 * _LONGEST_PAUSE))

    def _priced(self, answer: ModelAnswer) -> ModelAnswer:
        config, used = self._config, answer.usage
        if not used or "cost" in used or not (config.price_input or config.price_output):
            return answer
        fresh = used["input"] - used["cached"]
        cached_price = config.price_cached or config.price_input
        cost = (fresh * config.price_input + used["cached"] * cached_price + used["output"] * config.price_output) / 1e6
        return answer._replace(usage={**used, "cost": round(cost, 8)})


def _is_overflow(failed: Any) -> bool:
    text = f"{getattr(failed, 'code', '')} {failed.message}".lower()
    return any(mark in text for mark in ("context_length", "context length", "maximum context", "too many tokens"))


def _retry_after(failed: Any) -> float:
    try:
        return max(0.0, float(failed.response.headers.get("retry-after") or 0))
    except ValueError:
        return 0.0
