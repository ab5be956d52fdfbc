"""One call of a tool, from what the client passed to the result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias

from mcp import types

from holdfast.errors import HoldfastError
from holdfast.mcp import answers, asking, news, patience, progress
from holdfast.mcp.asking import Question, Questions
from holdfast.mcp.live import Live
from holdfast.mcp.peers import Context, FindPeer, Peer, client_name
from holdfast.mcp.pool import Kind, Pool
from holdfast.tools.arguments import parse
from holdfast.tools.answers import Answer, Refusal, broken, failed, refused

#: Under this name stand arguments that are no object, so that they reach the tools, which say what is wrong with them.
NOT_AN_OBJECT = "\0arguments"
_PASS_IT = "pass `session` with every later call"
#: Of a call's time, what a person's answer leaves for the command.
_ASK_SHARE = 0.8
_SHORTEST = 1.0

Outcome: TypeAlias = types.CallToolResult | types.InputRequiredResult


class _Call(NamedTuple):
    """A call that was understood."""

    ctx: Context
    peer: Peer
    session: str
    kind: Kind
    name: str
    given: dict[str, object]
    begun: float


class Calls:
    """`find_live` is what a client is told by itself; `pushes` where that consumes the news."""

    def __init__(
        self,
        pool: Pool,
        find_peer: FindPeer,
        find_live: Callable[[Context], Live],
        wanted_limit: float | None = None,
        pushes: bool = False,
    ) -> None:
        self._pool = pool
        self.peer = find_peer
        self.live = find_live
        self._wanted = wanted_limit
        self._pushes = pushes
        self._questions = Questions()
        #: Work that is not waited for any more when a client gives up, on its way to an orderly end.
        self._ending: set[asyncio.Task[Any]] = set()

    def limit(self, ctx: Context) -> float:
        """How long a call of this client lasts at most."""
        return patience.call_limit(client_name(ctx), self._wanted)

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> Outcome:
        """Whatever is passed, the answer has the envelope's shape, or is a question to the person."""
        try:
            call = self._read(ctx, params.name, params.arguments)
            answered = self._questions.take(params.request_state, (params.name, call.given))
            if answered is not None:
                call = call._replace(session=answered.session)
            made = await self._finished(self._made(call, answered, params.input_responses))
            return made if isinstance(made, types.InputRequiredResult) else answers.to_result(_told(call, made))
        except Refusal as refusal:
            return answers.to_result(refused(refusal))
        except HoldfastError as error:
            return answers.to_result(failed(error))
        except Exception as fault:  # noqa: BLE001 - whatever it is, the model gets an answer of the one shape
            return answers.to_result(broken(fault))

    async def settle(self, seconds: float) -> None:
        """Until what was given up has ended."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=seconds)

    def _read(self, ctx: Context, name: str, arguments: object) -> _Call:
        """Raises Refusal."""
        given = dict(parse(_unwrapped(arguments)))
        peer = self.peer(ctx)
        session = peer.chosen(given.pop("session", None))
        kind = Kind(self.limit(ctx), asking.can_ask(ctx, peer), self._pushes)
        return _Call(ctx, peer, session, kind, name, given, time.monotonic())

    async def _made(self, call: _Call, answered: Question | None, said: Any) -> Answer | types.InputRequiredResult:
        async with self._accompanied(call):
            if answered is not None:
                denied = await asking.decide(call.ctx, call.session, answered.approval, (said or {}).get(asking.KEY))
                if denied is not None:
                    return denied
            made = await self._pool.answer(call.session, call.kind, call.name, call.given)
            if made.get("reason") != "approval_required" or not call.kind.can_ask:
                return made
            return await self._asked(call, made)

    async def _asked(self, call: _Call, made: Answer) -> Answer | types.InputRequiredResult:
        """Ask the person; with a yes, the same again."""
        approval = str(made.get("approval"))
        async with asking.withdrawn_if_given_up(call.ctx, call.session, approval):
            if asking.is_modern(call.ctx):
                self._questions.put(Question(approval, call.session, (call.name, call.given), time.monotonic()))
                return await asking.question_result(call.session, approval)
            said = await asking.elicit(call.ctx, call.session, approval, call.kind.limit * _ASK_SHARE)
        denied = await asking.decide(call.ctx, call.session, approval, said)
        if denied is not None:
            return denied
        return await self._pool.answer(call.session, call.kind, call.name, _hurried(call))

    @asynccontextmanager
    async def _accompanied(self, call: _Call) -> AsyncIterator[None]:
        """While a call lasts, its client is told how it goes, and the news that it asked for."""
        work: list[Awaitable[None]] = []
        if not asking.is_modern(call.ctx) or self._pushes:
            self.live(call.ctx).uses(call.session)
        if progress.is_wanted(call.ctx):
            work.append(progress.report(call.ctx, call.session, call.name, call.given))
        if (level := _level_of_request(call.ctx)) is not None:
            work.append(_logs_of_request(call.ctx, call.session, level))
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


async def _logs_of_request(ctx: Context, session: str, level: str) -> None:
    await news.tell(session, lambda notice: news.send_as_log(ctx.session, notice, level, ctx.request_id))


def _level_of_request(ctx: Context) -> str | None:
    """The newest protocol asks for log messages with each request."""
    if not asking.is_modern(ctx):
        return None
    level = (ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
    return level if isinstance(level, str) and news.is_level(level) else None


def _hurried(call: _Call) -> dict[str, object]:
    """The same, with what is left of the time: the client has waited for the person, too."""
    left = max(_SHORTEST, call.kind.limit - (time.monotonic() - call.begun))
    asked = call.given.get("timeout")
    if call.name != "terminal" or call.given.get("background"):
        return call.given
    usable = isinstance(asked, (int, float)) and 0 < asked < left
    return call.given if usable else {**call.given, "timeout": round(left, 1)}


def _told(call: _Call, made: Answer) -> Answer:
    """The first answer tells the handle. Where the server forgets who called, it says what that means."""
    peer, session = call.peer, call.session
    if peer.is_brief:
        is_passed = "session" in ((call.ctx.params or {}).get("arguments") or {})
        return made if is_passed else {**answers.with_note(made, _PASS_IT), "session": session}
    return {**made, "session": session} if peer.is_news(session) else made


def _unwrapped(arguments: object) -> object:
    if isinstance(arguments, dict) and NOT_AN_OBJECT in arguments:
        return arguments[NOT_AN_OBJECT]
    return arguments
