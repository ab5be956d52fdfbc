"""Asking the user at the client when a command needs approval. Anything but an explicit yes is a no."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from mcp import types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from holdfast.client.aio import AsyncClient
from holdfast.client.results.approval import Approval
from holdfast.errors import HoldfastError
from holdfast.mcp.peers import Context, client_name
from holdfast.tools.answers import Answer, answer

#: The form's field, and the key of the question where the protocol wants one.
FIELD = "decision"
KEY = "approval"
_SCOPES = ("once", "session", "always")
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        FIELD: {
            "type": "string",
            "title": "Run it?",
            "description": "deny; once: this time; session: until the session ends; always: from now on",
            "enum": ["deny", *_SCOPES],
        }
    },
    "required": [FIELD],
}
_NEXT = "do it another way, or ask the user; do not try to get around it"
_MOST_QUESTIONS = 1000
_LONGEST_REASON = 200
_DENY_TIMEOUT = 1.0
#: Seconds after which an open question is dropped.
_KEPT = 3600.0


class CouldNotAsk(NamedTuple):
    """In place of an answer, where the client did not show the question to the user."""

    why: str


class McpQuestion(NamedTuple):
    """One request for approval. `call` is what it was asked for: an answer with another call does not count."""

    approval: str
    session: str
    is_brief: bool
    """Whether nothing ties the client to the session but the state of the question."""
    call: object
    at: float


class Questions:
    """Open questions of the newest protocol, by the state that comes back with the answer: it cannot be guessed."""

    def __init__(self) -> None:
        self._open: dict[str, McpQuestion] = {}

    def put(self, question: McpQuestion) -> str:
        """Returns its state."""
        state = secrets.token_urlsafe(16)
        self._open[state] = question
        while len(self._open) > _MOST_QUESTIONS:
            del self._open[next(iter(self._open))]
        return state

    def take(self, state: str, call: object, session: str, is_brief: bool) -> McpQuestion | None:
        """The question that this call of this session answers; None where it answers none of its own."""
        found = self._open.get(state)
        if found is None or found.call != call or time.monotonic() - found.at > _KEPT:
            return None
        if found.session != session and not (found.is_brief and is_brief):
            return None
        return self._open.pop(state)


async def elicit(ctx: Context, session: str, approval: str, seconds: float) -> types.ElicitResult | CouldNotAsk | None:
    """What the user says; None without an answer in time."""
    message = await _message(session, approval)
    try:
        async with asyncio.timeout(seconds):
            return await ctx.session.elicit_form(message, _FORM, related_request_id=ctx.request_id)
    except TimeoutError:
        return None
    except MCPError as error:
        return CouldNotAsk(_visible(error.message)[:_LONGEST_REASON])
    except ValidationError:
        return CouldNotAsk("its answer is none of the protocol")


@asynccontextmanager
async def denied_if_cancelled(ctx: Context, session: str, approval: str) -> AsyncIterator[None]:
    """While the user is asked: where the client cancels the call, the request is denied."""
    try:
        yield
    except asyncio.CancelledError:
        with suppress(HoldfastError, TimeoutError):
            async with asyncio.timeout(_DENY_TIMEOUT), AsyncClient(session, strict=True) as client:
                await client.deny(approval, by=f"{_decider(ctx)} (gave up)")
        raise


async def question_result(session: str, approval: str, state: str) -> types.InputRequiredResult:
    """The question as the newest protocol asks it."""
    params = types.ElicitRequestFormParams(message=await _message(session, approval), requested_schema=_FORM)
    return types.InputRequiredResult(input_requests={KEY: types.ElicitRequest(params=params)}, request_state=state)


async def decide(ctx: Context, session: str, approval: str, said: object) -> Answer | None:
    """Record the decision. None for a yes: the call goes on; else its answer. Raises HoldfastError."""
    scope = _scope(said)
    by = _decider(ctx)
    async with AsyncClient(session, strict=True) as client:
        if scope is not None:
            await client.approve(approval, scope, by=by)
            return None
        try:
            await client.deny(approval, by=by)
        except HoldfastError:
            pass  # it was decided otherwise, or has expired: the command is not run in any case
    reason, what = _refusal(said)
    return answer("denied", reason, _NEXT, message=what, approval=approval)


def _decider(ctx: Context) -> str:
    by = f"mcp {client_name(ctx) or 'client'}"[:100]
    return by if by.isprintable() else "mcp client"


def _scope(said: object) -> str | None:
    if not isinstance(said, types.ElicitResult) or said.action != "accept":
        return None
    word = (said.content or {}).get(FIELD) if isinstance(said.content, Mapping) else None
    return word if isinstance(word, str) and word in _SCOPES else None


def _refusal(said: object) -> tuple[str, str]:
    if said is None:
        return "timeout", "the user did not answer in time, which is a no"
    if isinstance(said, CouldNotAsk):
        return "could_not_ask", f"the client could not ask the user, which is a no: {said.why}"
    is_dismissed = isinstance(said, types.ElicitResult) and said.action == "cancel"
    return "denied", "the user dismissed the question, which is a no" if is_dismissed else "the user said no"


async def _message(session: str, approval: str) -> str:
    async with AsyncClient(session, strict=True) as client:
        found = [one for one in await client.approvals(session=session) if one.id == approval]
    return _question(found[0]) if found else f"A command needs your approval ({approval})."


def _question(approval: Approval) -> str:
    """The user sees exactly what would be done: invisible characters are written out."""
    verb = {"start": "run", "restart": "run again", "send": "type into a running program"}.get(approval.action, "do")
    where = approval.fields.get("cwd")
    place = f"\nin {_visible(str(where))}" if where else ""
    return f"The agent wants to {verb}:\n\n{_visible(approval.command)}\n{place}\nWhy this is asked: {approval.why}"


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
