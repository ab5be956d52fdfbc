"""Requests of clients: each from its start until the client has the reply, and the connections on the socket.

The socket and HTTP run requests alike. One connection has several at once; a slow client delays no other.
"""

from __future__ import annotations

import asyncio
import os
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from holdfast import light_json
from holdfast.daemon.approvals import requests
from holdfast.daemon.approvals.audit import note_operator
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.log import note
from holdfast.daemon.handlers import HANDLERS
from holdfast.daemon.listener import file_limit, scope
from holdfast.daemon.listener.accepting import Caller
from holdfast.errors import ApprovalRequired, BadValue, HoldfastError, NotNow, Unsupported
from holdfast.ops.catalog import OPERATIONS
from holdfast.ops.declare import Operation, field
from holdfast.version import VERSION as RELEASE
from holdfast.wire import frames, json_bounds
from holdfast_keeper import failpoints

if TYPE_CHECKING:
    from holdfast.ops.kinds import Flag, SessionName, Text

#: Bytes that may wait for a client to read them. Past that, nothing more is read from it.
_MOST_UNREAD = 1 << 20
_MOST_REQUESTS = 4096
#: Pieces of an upload that a client may send before the first is used, and the longest piece.
_PIECES_AHEAD = 4
_LONGEST_PIECE = 1 << 20
_MOST_DELIVERED = 1000

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
        owner = self._context.sessions.resolve(self.call.owner)
        self._context.inbox.settle(self.call.consumed, "wait", owner)

    def not_delivered(self) -> None:
        """The client does not get the reply: the notifications in it go back to the inbox."""
        self._context.inbox.release(self.call.consumed, self.call)

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
        except Exception as failed:  # noqa: BLE001 - a failing request must not end more than itself
            if isinstance(failed, OSError) and file_limit.is_reached(failed):
                return file_limit.error(failed)
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


class Hello(Operation):
    """The first message of a connection."""

    session: SessionName | None = field(None, help="The session that the client speaks for.")
    strict: Flag = field(False, help="Only what belongs to that session is visible.")
    had: list[Text] = field((), items=_MOST_DELIVERED, help="Ids of notifications that earlier replies stood for.")


def _loads(data: bytes) -> Any:
    """Raises ValueError, also for a long message with more values than any request needs: to parse it takes long."""
    json_bounds.check_values(data)
    return light_json.load_bytes(data)


class Upload:
    """Bytes that a client sends after its request. `want` grants it more pieces, so that few wait here."""

    def __init__(self, want: Callable[[int], object]) -> None:
        self._want = want
        self._pieces: deque[bytes] = deque()
        self._has_piece = asyncio.Event()
        self._granted = 0
        self._is_over = False

    def take(self, data: bytes) -> bool:
        """False for a piece that was not granted, or is too long."""
        if self._granted <= 0 or len(data) > _LONGEST_PIECE:
            return False
        self._granted -= 1
        self._pieces.append(data)
        self._has_piece.set()
        return True

    async def receive(self) -> bytes:
        """The next piece; empty at the end, also when it is called again."""
        if self._is_over:
            return b""
        if (more := _PIECES_AHEAD - self._granted - len(self._pieces)) > 0:
            self._granted += more
            self._want(more)
        while not self._pieces:
            self._has_piece.clear()
            await self._has_piece.wait()
        data = self._pieces.popleft()
        self._is_over = not data
        return data


class SocketConnection(asyncio.Protocol):
    """Speaks the frames of `wire`. Its requests end with the connection, except those that complete."""

    def __init__(self, context: DaemonContext, caller: Caller, on_end: Callable[[SocketConnection], None]) -> None:
        self._context = context
        self._on_end = on_end
        self._decoder = frames.FrameDecoder(_loads)
        self._transport: asyncio.Transport | None = None
        self._running: dict[int, PendingCall] = {}
        #: Calls whose replies stand for notifications, until the client confirms with `got`.
        self._unconfirmed: dict[int, PendingCall] = {}
        #: Uploads of requests under way, and the one that the next bytes belong to.
        self._uploads: dict[int, Upload] = {}
        self._announced: int | None = None
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._is_greeted = False
        self._session: str | None = None
        self._claimed: str | None = None
        self._is_strict = False
        self._caller = caller

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_MOST_UNREAD)

    def connection_lost(self, why: Exception | None) -> None:
        if why is not None and self._unconfirmed:
            self._read_last_confirmations()
        self._transport = None
        self._can_write.set()
        for call in list(self._running.values()):
            call.give_up()
        for call in self._unconfirmed.values():
            call.not_delivered()
        self._unconfirmed.clear()
        self._context.inbox.give_back(self)
        if self._context.approvals.askers:
            requests.disconnected(self._context, self)
        self._on_end(self)

    def _read_last_confirmations(self) -> None:
        """A client may confirm its reply and disconnect. Where a write fails then, the transport reads no more."""
        assert self._transport is not None
        with suppress(OSError, ValueError, frames.FrameError):
            for message in self._decoder.feed(os.read(self._transport.get_extra_info("socket").fileno(), _MOST_UNREAD)):
                if isinstance(message, dict) and message.get("op") == "got" and isinstance(message.get("rid"), int):
                    self._confirm(message["rid"])

    def pause_writing(self) -> None:
        self._can_write.clear()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._can_write.set()
        if self._transport is not None:
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        try:
            received = self._decoder.feed(data)
        except (frames.FrameError, RecursionError) as broken:
            note("client-unintelligible", why=broken)
            self.abort()
            return
        for message in received:
            self._take(message)

    def close(self) -> None:
        """Send what is written, then close."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    # Requests.

    def _take(self, message: Message | bytes) -> None:
        if isinstance(message, bytes) or self._announced is not None:
            self._take_piece(message)
            return
        rid, op = message.get("rid"), message.get("op")
        if not isinstance(rid, int):
            self.abort()
        elif op == "cancel":
            self._cancel(rid)
        elif op == "got":
            self._confirm(rid)
        elif op == "data":
            self._announced = rid
        elif op == "hello":
            self._greet(rid, message)
        elif not self._is_greeted:
            self._refuse(rid, BadValue("the first message of a connection is hello"))
        elif rid in self._running:
            self._refuse(rid, BadValue(f"request {rid} is still under way"))
        elif len(self._running) >= _MOST_REQUESTS:
            self._refuse(rid, NotNow(f"{_MOST_REQUESTS} requests of this connection are under way"))
        else:
            self._begin(rid, message)

    def _take_piece(self, data: Message | bytes) -> None:
        """A piece for a request that has ended meanwhile is dropped."""
        rid, self._announced = self._announced, None
        upload = None if rid is None else self._uploads.get(rid)
        if rid is None or not isinstance(data, bytes) or (upload is not None and not upload.take(data)):
            self.abort()

    def _begin(self, rid: int, message: Message) -> None:
        call = self._running[rid] = PendingCall(self._context, self._call(rid), str(message.get("op")))
        task = call.start(message, lambda call, outcome: self._send_outcome(rid, call, outcome))
        task.add_done_callback(lambda _: self._done(rid))

    def _done(self, rid: int) -> None:
        del self._running[rid]
        self._uploads.pop(rid, None)

    def _cancel(self, rid: int) -> None:
        if rid in self._running:
            self._running[rid].give_up()
        if (call := self._unconfirmed.pop(rid, None)) is not None:
            call.not_delivered()  # the reply comes too late

    def _send_outcome(self, rid: int, call: PendingCall, outcome: Outcome) -> bool:
        if isinstance(outcome, HoldfastError):
            if isinstance(outcome, ApprovalRequired):
                requests.asks_itself(self._context, self, call.call, outcome)
            self._refuse(rid, outcome)
            return False
        if not self._send({"rid": rid, "ok": outcome}):
            return False
        if call.needs_delivery:
            if (before := self._unconfirmed.pop(rid, None)) is not None:
                before.not_delivered()
            self._unconfirmed[rid] = call
            failpoints.reach("answer-sent")
        return True

    def _call(self, rid: int) -> Call:
        async def send_data(stream: str, offset: int, data: bytes) -> None:
            while not self._can_write.is_set():  # another stream of this connection may have filled it just now
                await self._can_write.wait()
            head = {"rid": rid, "data": {"stream": stream, "offset": offset, "size": len(data)}}
            if self._transport is not None and not self._transport.is_closing():
                self._transport.write(frames.encode(head) + frames.encode_bytes(data))
            await self._can_write.wait()

        async def receive_data() -> bytes:
            upload = self._uploads.get(rid)
            if upload is None:
                upload = self._uploads[rid] = Upload(lambda count: self._send({"rid": rid, "want": count}))
            return await upload.receive()

        caller = self._caller
        origin, claimed = caller.origin, self._claimed
        return Call(self._owner(), send_data, self, self._is_strict, origin, caller.pid, claimed, receive_data)

    def _owner(self) -> str | None:
        """The session that the client speaks for, by its current name."""
        return self._context.sessions.resolve(self._session) if self._session is not None else None

    def _confirm(self, rid: int) -> None:
        if (call := self._unconfirmed.pop(rid, None)) is not None:
            failpoints.reach("answer-got")
            call.delivered()

    def _greet(self, rid: int, message: Message) -> None:
        try:
            if not isinstance(message.get("version"), int):
                raise BadValue("hello names the version that the client speaks")
            hello = Hello.read(message)
        except HoldfastError as error:
            self._refuse(rid, error)
            return
        origin = self._caller.origin
        self._session = origin.session if origin is not None else hello.session
        self._claimed = hello.session if origin is not None else None
        self._is_strict = hello.strict
        self._is_greeted = True
        if hello.had:
            owner = self._owner() or "default"
            self._context.inbox.settle(hello.had, "wait", owner)
        is_bound = self._is_strict or origin is not None
        greeting = {"version": frames.PROTOCOL_VERSION, "daemon": RELEASE, "pid": os.getpid(), "strict": is_bound}
        self._send({"rid": rid, "ok": {**greeting, "keeper": self._context.keeper.release}})

    # Replies.

    def _refuse(self, rid: int, error: HoldfastError) -> None:
        self._send({"rid": rid, "error": error.to_wire()})

    def _send(self, message: Message) -> bool:
        """Whether it is on its way."""
        if self._transport is None or self._transport.is_closing():  # uvloop raises on a write to a closed transport
            return False
        try:
            self._transport.write(frames.encode(message, light_json.dump_bytes))
        except frames.FrameError as too_long:
            self._refuse(message["rid"], HoldfastError(str(too_long), next="ask for less at once"))
            return False
        return True
