"""Asking the person at the client, when a command needs approval. Whatever is not an explicit yes is a no."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from mcp import types
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from holdfast.client.approval import Approval
from holdfast.errors import HoldfastError
from holdfast.mcp.clients import open_client
from holdfast.mcp.peers import Context, Peer, client_name
from holdfast.tools.envelope import Answer, answer

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
_MOST = 1000
_LONGEST_WHY = 200
_GIVE_UP_WITHIN = 1.0
#: A question of the newest protocol that was not answered for so long is forgotten.
_KEEP = 3600.0


class Unable(NamedTuple):
    """What stands for an answer where the client did not bring the question before a person."""

    why: str


class Question(NamedTuple):
    """One request for approval. `call` is what it was asked for: an answer to another call does not count."""

    approval: str
    session: str
    call: object
    at: float


def can_ask(ctx: Context, peer: Peer) -> bool:
    """Whether the client shows forms to a person, and may let things pass."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    if elicitation is None or peer.is_gated or (elicitation.form is None and elicitation.url is not None):
        return False
    return is_modern(ctx) or ctx.session.can_send_request


def is_modern(ctx: Context) -> bool:
    """Whether a question is a result, after which the client calls again."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


class Questions:
    """Those of the newest protocol that are out, by the state that comes back with the answer."""

    def __init__(self) -> None:
        self._out: dict[str, Question] = {}

    def put(self, question: Question) -> None:
        self._out[question.approval] = question
        while len(self._out) > _MOST:
            del self._out[next(iter(self._out))]

    def take(self, state: str | None, call: object) -> Question | None:
        """The question that this call answers; None where it answers none of ours."""
        found = self._out.get(state or "")
        if found is None or found.call != call or time.monotonic() - found.at > _KEEP:
            return None
        return self._out.pop(found.approval)


async def elicit(ctx: Context, session: str, approval: str, seconds: float) -> types.ElicitResult | Unable | None:
    """What the person says; None when nobody answers in time."""
    message = await _message(session, approval)
    try:
        async with asyncio.timeout(seconds):
            return await ctx.session.elicit_form(message, _FORM, related_request_id=ctx.request_id)
    except TimeoutError:
        return None
    except MCPError as error:
        return Unable(_visible(error.message)[:_LONGEST_WHY])
    except ValidationError:
        return Unable("its answer is none of the protocol")


@asynccontextmanager
async def withdrawn_if_given_up(ctx: Context, session: str, approval: str) -> AsyncIterator[None]:
    """While a person is asked: where the client gives the call up, the request is over, too."""
    try:
        yield
    except asyncio.CancelledError:
        with suppress(HoldfastError, TimeoutError):
            async with asyncio.timeout(_GIVE_UP_WITHIN), open_client(session) as client:
                await client.deny(approval, by=f"{_who(ctx)} (gave up)")
        raise


async def question_result(session: str, approval: str) -> types.InputRequiredResult:
    """The question as the newest protocol asks it."""
    params = types.ElicitRequestFormParams(message=await _message(session, approval), requested_schema=_FORM)
    return types.InputRequiredResult(input_requests={KEY: types.ElicitRequest(params=params)}, request_state=approval)


async def decide(ctx: Context, session: str, approval: str, said: object) -> Answer | None:
    """Write down what was said. None for a yes: the call goes on; else its answer. Raises HoldfastError."""
    scope = _scope(said)
    by = _who(ctx)
    async with open_client(session) as client:
        if scope is not None:
            await client.approve(approval, scope, by=by)
            return None
        try:
            await client.deny(approval, by=by)
        except HoldfastError:
            pass  # it was decided otherwise, or is over: it is not done in any case
    reason, what = _refusal(said)
    return answer("denied", reason, _NEXT, message=what, approval=approval)


def _who(ctx: Context) -> str:
    by = f"mcp {client_name(ctx) or 'client'}"[:100]
    return by if by.isprintable() else "mcp client"


def _scope(said: object) -> str | None:
    if not isinstance(said, types.ElicitResult) or said.action != "accept":
        return None
    word = (said.content or {}).get(FIELD) if isinstance(said.content, Mapping) else None
    return word if isinstance(word, str) and word in _SCOPES else None


def _refusal(said: object) -> tuple[str, str]:
    if said is None:
        return "timeout", "nobody answered in time, which is a no"
    if isinstance(said, Unable):
        return "could_not_ask", f"the client could not ask the user, which is a no: {said.why}"
    is_dismissed = isinstance(said, types.ElicitResult) and said.action == "cancel"
    return "denied", "the user dismissed the question, which is a no" if is_dismissed else "the user said no"


async def _message(session: str, approval: str) -> str:
    async with open_client(session) as client:
        found = [one for one in await client.approvals(session=session) if one.id == approval]
    return _told(found[0]) if found else f"A command needs your approval ({approval})."


def _told(approval: Approval) -> str:
    """The person sees exactly what would be done: what cannot be seen is written out."""
    verb = {"start": "run", "restart": "run again", "send": "type into a running program"}.get(approval.action, "do")
    where = approval.fields.get("cwd")
    place = f"\nin {_visible(str(where))}" if where else ""
    return f"The agent wants to {verb}:\n\n{_visible(approval.command)}\n{place}\nWhy this is asked: {approval.why}"


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
