"""One request from its start until the client has the reply. The socket and HTTP use it alike."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable

from holdfast.daemon.approvals.audit import note_operator
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.log import note
from holdfast.daemon.handlers import HANDLERS
from holdfast.daemon.listener import scope
from holdfast.errors import HoldfastError, Unsupported
from holdfast.ops.catalog import OPERATIONS

Outcome = Message | HoldfastError
#: Takes the reply or the error; returns whether it is on its way to the client.
SendOutcome = Callable[["PendingCall", Outcome], bool]


class PendingCall:
    """Runs the handler of an operation.

    When the client disconnects or gives up, an operation that `completes` goes on; any other one is cancelled.
    Notifications that the reply stands for are delivered when the client has the reply. Until then they are held
    back; without a reply they go back to the inbox.
    """

    def __init__(self, context: DaemonContext, call: Call, op: str) -> None:
        self._context = context
        self._op = op
        self._task: asyncio.Task[Outcome] | None = None
        self.call = call
        self.completes = op in OPERATIONS and OPERATIONS[op].traits.completes

    def start(self, ask: Message, send: SendOutcome | None = None) -> asyncio.Task[Outcome]:
        """Start the handler. `send` is called in the same task as soon as there is an outcome."""
        work = self._run(ask, send or _is_reply)
        if self.completes:
            self._task = self._context.background.start(work, "request")
        else:
            self._task = asyncio.get_running_loop().create_task(work)
        return self._task

    async def reply(self, ask: Message) -> Message:
        """The reply, for a client that waits here: cancelling this gives up. Raises what the handler raises."""
        task = self.start(ask)
        try:
            outcome = await (asyncio.shield(task) if self.completes else task)
        finally:
            self.call.given_up.set()
        if isinstance(outcome, HoldfastError):
            raise outcome
        return outcome

    def give_up(self) -> None:
        """The client disconnected, or does not want the reply any more."""
        if self.completes:
            self.call.given_up.set()
        elif self._task is not None:
            self._task.cancel()

    @property
    def needs_delivery(self) -> bool:
        """Whether the reply stands for notifications."""
        return bool(self.call.consumed)

    def delivered(self) -> None:
        """The client has the reply: the notifications in it are not delivered again."""
        self._context.background.start(self._settle(), "consumed")

    def not_delivered(self) -> None:
        """The client does not get the reply: the notifications in it go back to the inbox."""
        self._context.inbox.release(self.call.consumed, self.call)

    async def _settle(self) -> None:
        owner = self._context.sessions.resolve(self.call.owner)
        await self._context.inbox.settle(self.call.consumed, "wait", owner)

    async def _run(self, ask: Message, send: SendOutcome) -> Outcome:
        is_sent = False
        try:
            outcome = await self._outcome(ask)
            is_sent = send(self, outcome)
            return outcome
        except asyncio.CancelledError:
            send(self, CallCancelled("given up"))
            raise
        finally:
            if not is_sent:
                self.not_delivered()

    async def _outcome(self, ask: Message) -> Outcome:
        try:
            return await answer(self._context, self.call, self._op, ask)
        except HoldfastError as error:
            return error
        except Exception:  # noqa: BLE001 - a failing request must not end more than itself
            note("request-failed", op=self._op, why=traceback.format_exc())
            return HoldfastError(f"the daemon failed on {self._op}: see its log")


class CallCancelled(HoldfastError):
    """The client gave the request up."""

    code = "cancelled"
    next = ""


def _is_reply(call: PendingCall, outcome: Outcome) -> bool:
    return not isinstance(outcome, HoldfastError)


async def answer(context: DaemonContext, call: Call, op: str, ask: Message) -> Message:
    """Check the request, restrict it to what the caller may see, and call the handler.

    Raises Unsupported for an unknown operation, BadValue, Denied, and what the handler raises.
    """
    operation = OPERATIONS.get(op)
    if operation is None:
        raise Unsupported(f"unknown operation {op[:60]!r}")
    handler = HANDLERS[operation]
    if call.is_strict:
        scope.check_allowed(operation)
        request = operation.read(ask)
        scope.narrow(context, call, request)
        return await handler(context, call, request)
    request = operation.read(ask)
    noted = note_operator(context, call, request) if operation.traits.audited else None
    try:
        return await handler(context, call, request)
    finally:
        if noted is not None:
            await noted
