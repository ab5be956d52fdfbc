"""One call of a tool, from the arguments of the client to the result."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias

from mcp import types

from holdfast.mcp import elicitation, progress, push
from holdfast.mcp.elicitation import McpQuestion, Questions
from holdfast.mcp.peers import Context, FindPeer, McpPeer, can_ask, client_name, is_modern
from holdfast.mcp.push import Push
from holdfast.tools.aio import AsyncTools, ToolPool
from holdfast.tools.answers import Answer, Limits, of_error, with_note
from holdfast.tools.arguments import parse

#: The key of arguments that are no object, so that they reach the tools, which say what is wrong with them.
NOT_AN_OBJECT = "\0arguments"
_PASS_IT = "pass `session` with every later call"
#: Seconds that a call lasts at most: many clients give up after 60.
_CALL_LIMIT, _CALL_LIMITS = 50.0, {"claude-code": 180.0}
_SHORTEST_LIMIT, LONGEST_LIMIT = 1.0, 3600.0
#: The user's answer may take this share of a call's time; the rest is for the command.
_ASK_SHARE = 0.8
_MOST_SESSIONS = 64

Outcome: TypeAlias = types.CallToolResult | types.InputRequiredResult


def call_limit(client: str | None, requested: float | None) -> float:
    """Seconds: what was asked for; else what this client is known to wait for; else what most do."""
    if requested is not None:
        return min(max(requested, _SHORTEST_LIMIT), LONGEST_LIMIT)
    return _CALL_LIMITS.get((client or "").strip().lower(), _CALL_LIMIT)


def approval_wait(seconds: float) -> float:
    """How long a start waits for approval by other means, so that there is time for the command, too."""
    return min(60.0, seconds / 2)


class ToolKey(NamedTuple):
    """What the tools of a call depend on."""

    session: str
    limit: float
    """The seconds that a call lasts at most."""
    can_ask: bool = False
    """Whether the client asks the user itself, when a command needs approval."""
    pushes: bool = False
    """Whether notices are sent as they come, and not with answers."""


def tool_pool(cwd: str | os.PathLike[str] | None = None, most: int = _MOST_SESSIONS) -> ToolPool[ToolKey]:
    """The tools of all sessions; commands of a new session begin in `cwd`."""

    def make(key: ToolKey) -> AsyncTools:
        limits = Limits(window=key.limit, longest_window=key.limit, wait=key.limit, call=key.limit)
        options = {"asker": key.can_ask, "approval_wait": approval_wait(key.limit)}
        return AsyncTools(key.session, cwd=cwd, limits=limits, push=key.pushes, options=options)

    return ToolPool(make, most)


class _Call(NamedTuple):
    """A call that was understood."""

    ctx: Context
    peer: McpPeer
    key: ToolKey
    name: str
    given: dict[str, object]
    begun: float

    @property
    def what(self) -> object:
        return self.name, self.given

    @property
    def is_brief(self) -> bool:
        """Whether the client names no session: this call has a new one."""
        return self.peer.is_brief and self.key.session == self.peer.session


class Calls:
    """`find_push` finds what a client is sent by itself; `pushes`: that acknowledges notices."""

    def __init__(
        self,
        pool: ToolPool[ToolKey],
        find_peer: FindPeer,
        find_push: Callable[[Context], Push],
        requested_limit: float | None = None,
        pushes: bool = False,
    ) -> None:
        self._pool = pool
        self.peer = find_peer
        self.push = find_push
        self._requested_limit = requested_limit
        self._pushes = pushes
        self._questions = Questions()
        #: Calls that the client gave up, until they have ended.
        self._ending: set[asyncio.Task[Any]] = set()

    def limit(self, ctx: Context) -> float:
        """How long a call of this client lasts at most."""
        return call_limit(client_name(ctx), self._requested_limit)

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> Outcome:
        """Any arguments get an answer of the one shape, or a question to the user."""
        try:
            call = self._read(ctx, params.name, params.arguments)
            answered = self._answered(call, params.request_state)
            if answered is not None:
                call = call._replace(key=call.key._replace(session=answered.session))
            made = await self._finished(self._made(call, answered, params.input_responses))
            return made if isinstance(made, types.InputRequiredResult) else to_result(_with_session(call, made))
        except Exception as error:  # noqa: BLE001 - the model gets an answer after any error
            return to_result(of_error(error))

    def _answered(self, call: _Call, state: str | None) -> McpQuestion | None:
        if state is None or not call.key.can_ask:
            return None
        return self._questions.take(state, call.what, call.key.session, call.is_brief)

    async def settle(self, seconds: float) -> None:
        """Until the calls that were given up have ended."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=seconds)

    def _read(self, ctx: Context, name: str, arguments: object) -> _Call:
        """Raises ToolRefusal."""
        if isinstance(arguments, dict) and NOT_AN_OBJECT in arguments:
            arguments = arguments[NOT_AN_OBJECT]
        given = dict(parse(arguments))
        peer = self.peer(ctx)
        session = peer.chosen(given.pop("session", None))
        key = ToolKey(session, self.limit(ctx), can_ask(ctx, peer), self._pushes)
        return _Call(ctx, peer, key, name, given, time.monotonic())

    async def _made(self, call: _Call, answered: McpQuestion | None, said: Any) -> Answer | types.InputRequiredResult:
        async with self._accompanied(call):
            if answered is not None:
                said = (said or {}).get(elicitation.KEY)
                denied = await elicitation.decide(call.ctx, call.key.session, answered.approval, said)
                if denied is not None:
                    return denied
            made = await self._answer(call, call.given)
            if made.get("reason") != "approval_required" or not call.key.can_ask:
                return made
            return await self._asked(call, str(made.get("approval")))

    async def _answer(self, call: _Call, given: dict[str, object]) -> Answer:
        async with self._pool.using(call.key) as tools:
            return await tools.answer(call.name, given)

    async def _asked(self, call: _Call, approval: str) -> Answer | types.InputRequiredResult:
        """Ask the user to approve; if approved, repeat the call."""
        session = call.key.session
        async with elicitation.denied_if_cancelled(call.ctx, session, approval):
            if is_modern(call.ctx):
                question = McpQuestion(approval, session, call.is_brief, call.what, time.monotonic())
                return await elicitation.question_result(session, approval, self._questions.put(question))
            said = await elicitation.elicit(call.ctx, session, approval, call.key.limit * _ASK_SHARE)
        denied = await elicitation.decide(call.ctx, session, approval, said)
        return denied if denied is not None else await self._answer(call, _with_time_left(call))

    @asynccontextmanager
    async def _accompanied(self, call: _Call) -> AsyncIterator[None]:
        """While a call lasts, its client is sent progress, and the notices that it asked for."""
        work: list[Awaitable[None]] = []
        if not is_modern(call.ctx) or self._pushes:
            self.push(call.ctx).uses(call.key.session)
        meta = (call.ctx.params or {}).get("_meta")
        if isinstance(meta, Mapping) and meta.get("progressToken") is not None:
            work.append(progress.report(call.ctx, call.key.session, call.name, call.given))
        if (level := _level_of_request(call.ctx)) is not None:
            work.append(_logs_of_request(call.ctx, call.key.session, level))
        tasks = [asyncio.ensure_future(one) for one in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _finished(self, work: Any) -> Any:
        """The outcome. A client that gives up interrupts it, and does not wait for it to end."""
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise


def to_result(made: Answer) -> types.CallToolResult:
    """The answer as an object for programs, and as compact JSON for models.

    Unpaired surrogates, which JSON-RPC cannot carry, become question marks.
    """
    text = json.dumps(made, ensure_ascii=False, separators=(",", ":"), default=str)
    text = text.encode(errors="replace").decode()
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=json.loads(text),
        is_error=bool(made["is_error"]),
    )


async def _logs_of_request(ctx: Context, session: str, level: str) -> None:
    await push.send(session, lambda notice: push.send_as_log(ctx.session, notice, level, ctx.request_id))


def _level_of_request(ctx: Context) -> str | None:
    """The newest protocol asks for log messages with each request."""
    level = (ctx.meta or {}).get(types.LOG_LEVEL_META_KEY) if is_modern(ctx) else None
    return level if isinstance(level, str) and level in push.LEVELS else None


def _with_time_left(call: _Call) -> dict[str, object]:
    """The arguments, with what is left of the time: the client has waited for the user, too."""
    left = max(_SHORTEST_LIMIT, call.key.limit - (time.monotonic() - call.begun))
    asked = call.given.get("timeout")
    is_short = isinstance(asked, (int, float)) and 0 < asked < left
    if call.name != "terminal" or call.given.get("background") or is_short:
        return call.given
    return {**call.given, "timeout": round(left, 1)}


def _with_session(call: _Call, made: Answer) -> Answer:
    """The first answer has the handle. Where the server forgets the caller, each has it, and says to pass it."""
    peer, session = call.peer, call.key.session
    if not peer.is_brief:
        return {**made, "session": session} if peer.is_first_answer(session) else made
    is_passed = "session" in ((call.ctx.params or {}).get("arguments") or {})
    return made if is_passed else {**with_note(made, _PASS_IT), "session": session}
