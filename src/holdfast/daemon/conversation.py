"""One client: its requests, several at once, and their answers. A slow or dead one stalls nobody else."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from holdfast.daemon import askers, values
from holdfast.daemon.consuming import consumed_by_answer
from holdfast.daemon.dispatch import answer
from holdfast.daemon.logbook import note
from holdfast.daemon.room import Call, Message, Room
from holdfast.errors import ApprovalRequired, BadValue, HoldfastError, NotNow
from holdfast.ops.catalog import OPERATIONS
from holdfast.peers import peer_credentials
from holdfast.version import VERSION as RELEASE
from holdfast.wire import frames
from holdfast_keeper import points

#: Bytes that may wait for a client to read them before it gets no more, and is asked nothing more of.
_MOST_UNREAD = 1 << 20
_MOST_REQUESTS = 4096
_MOST_HAD = 1000


class Conversation(asyncio.Protocol):
    """Speaks the frames of `wire`. What it started ends with the connection, but for what is to go on."""

    def __init__(self, room: Room, on_end: Callable[[Conversation], None]) -> None:
        self._room = room
        self._on_end = on_end
        self._decoder = frames.Decoder()
        self._transport: asyncio.Transport | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        #: Those that nobody can give up.
        self._going_on: dict[int, Call] = {}
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._is_greeted = False
        self._session: str | None = None
        self._is_strict = self._is_gated = False
        self._pid: int | None = None
        #: Those whose answers tell the news of notices, until the client says that it has them.
        self._telling: dict[int, Call] = {}

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_MOST_UNREAD)

    def connection_lost(self, why: Exception | None) -> None:
        if why is not None and self._telling:
            self._hear_last_words()
        self._transport = None
        self._can_write.set()
        for rid in list(self._tasks):
            self._cancel(rid)
        for call in self._telling.values():
            self._not_told(call)
        self._telling.clear()
        self._room.inbox.give_back(self)
        askers.gone(self._room, self)
        self._on_end(self)

    def _hear_last_words(self) -> None:
        """A client may say that it has its answer, and go: where a write fails then, the transport reads no more."""
        assert self._transport is not None
        with suppress(OSError, ValueError, frames.FrameError):
            for message in self._decoder.feed(os.read(self._transport.get_extra_info("socket").fileno(), _MOST_UNREAD)):
                if (
                    isinstance(message, dict)
                    and message.get("op") == "got"
                    and isinstance(rid := message.get("rid"), int)
                ):
                    self._got(rid)

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
        """Say what is left to say and hang up."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Hang up, whatever is left to say."""
        if self._transport is not None:
            self._transport.abort()

    # Requests.

    def _take(self, message: Message | bytes) -> None:
        if isinstance(message, bytes):
            self.abort()
            return
        rid, op = message.get("rid"), message.get("op")
        if not isinstance(rid, int):
            self.abort()
        elif op == "cancel":
            self._cancel(rid)
        elif op == "got":
            self._got(rid)
        elif op == "hello":
            self._greet(rid, message)
        elif not self._is_greeted:
            self._refuse(rid, BadValue("the first message of a connection is hello"))
        elif rid in self._tasks:
            self._refuse(rid, BadValue(f"request {rid} is still under way"))
        elif len(self._tasks) >= _MOST_REQUESTS:
            self._refuse(rid, NotNow(f"{_MOST_REQUESTS} requests of this connection are under way"))
        else:
            self._begin(rid, message)

    def _begin(self, rid: int, message: Message) -> None:
        call = self._call(rid)
        work = self._serve(rid, call, message)
        if (op := OPERATIONS.get(str(message.get("op")))) is not None and op.traits.completes:
            self._going_on[rid] = call
            task = self._room.chores.start(work, "request")
        else:
            task = asyncio.get_running_loop().create_task(work)
        self._tasks[rid] = task
        task.add_done_callback(lambda _: self._ended(rid))

    def _ended(self, rid: int) -> None:
        del self._tasks[rid]
        self._going_on.pop(rid, None)

    def _cancel(self, rid: int) -> None:
        if rid in self._going_on:
            self._going_on[rid].given_up.set()
        elif rid in self._tasks:
            self._tasks[rid].cancel()
        if (call := self._telling.pop(rid, None)) is not None:
            self._not_told(call)  # the answer comes too late

    async def _serve(self, rid: int, call: Call, message: Message) -> None:
        try:
            found = await answer(self._room, call, str(message.get("op")), message)
        except asyncio.CancelledError:
            self._refuse(rid, Cancelled("given up"))
            raise
        except HoldfastError as error:
            if isinstance(error, ApprovalRequired):
                askers.told_to_ask(self._room, self, call, error)
            self._refuse(rid, error)
        except Exception:  # noqa: BLE001 - whatever a request brings up, it ends with the request
            note("request-failed", op=message.get("op"), why=traceback.format_exc())
            self._refuse(rid, HoldfastError(f"the daemon failed on {message.get('op')}: see its log"))
        else:
            self._answer(rid, call, found)
        finally:
            if self._telling.get(rid) is not call:
                self._not_told(call)

    def _answer(self, rid: int, call: Call, found: Message) -> None:
        if self._send({"rid": rid, "ok": found}) and call.consumed:
            if (before := self._telling.pop(rid, None)) is not None:
                self._not_told(before)
            self._telling[rid] = call
            points.reach("answer-sent")

    def _call(self, rid: int) -> Call:
        async def send_data(stream: str, offset: int, data: bytes) -> None:
            head = {"rid": rid, "data": {"stream": stream, "offset": offset, "size": len(data)}}
            if self._transport is not None:
                self._transport.write(frames.encode(head) + frames.encode_bytes(data))
            await self._can_write.wait()

        bound = {"is_strict": self._is_strict, "is_gated": self._is_gated}
        return Call(self._owner(), send_data, taker=self, pid=self._pid, **bound)

    def _owner(self) -> str | None:
        """The session that it speaks for, by the name that this has now."""
        return self._room.sessions.resolve(self._session) if self._session is not None else None

    def _got(self, rid: int) -> None:
        if (call := self._telling.pop(rid, None)) is not None:
            points.reach("answer-got")
            self._room.chores.start(consumed_by_answer(self._room, call), "consumed")

    def _not_told(self, call: Call) -> None:
        self._room.inbox.release(call.consumed, call)

    def _greet(self, rid: int, message: Message) -> None:
        try:
            if not isinstance(message.get("version"), int):
                raise BadValue("hello names the version that the client speaks")
            self._session = values.session(message)
            self._is_strict = values.flag(message, "strict")
            self._bind()
            had = values.texts(message, "had", _MOST_HAD)
        except HoldfastError as error:
            self._refuse(rid, error)
            return
        self._is_greeted = True
        if had:
            self._room.chores.start(self._room.inbox.settle(had, "wait", self._owner() or "default"), "had")
        is_bound = self._is_strict or self._is_gated
        greeting = {"version": frames.PROTOCOL_VERSION, "daemon": RELEASE, "pid": os.getpid(), "strict": is_bound}
        self._send({"rid": rid, "ok": greeting})

    def _bind(self) -> None:
        """A command that was judged speaks for its own session, whatever it says."""
        if self._transport is not None:
            self._pid = peer_credentials(self._transport.get_extra_info("socket"))[0]
        origin = self._room.ancestry.of(self._pid)
        if origin is not None:
            self._is_gated = True
            self._session = origin.session or self._session

    # Answers.

    def _refuse(self, rid: int, error: HoldfastError) -> None:
        self._send({"rid": rid, "error": error.to_wire()})

    def _send(self, message: Message) -> bool:
        """Whether it is on its way."""
        if self._transport is None:
            return False
        try:
            self._transport.write(frames.encode(message))
        except frames.FrameError as too_long:
            self._refuse(message["rid"], HoldfastError(str(too_long), next="ask for less at once"))
            return False
        return True


class Cancelled(HoldfastError):
    """The client gave the request up."""

    code = "cancelled"
    next = ""
