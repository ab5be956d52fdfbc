"""The two connections of the daemon to a keeper; a new one is opened when the old one is cut.

`KeeperLink` has requests and answers, and facts in order. A keeper that dies is replaced within milliseconds and knows
everything from disk, so a request that may be repeated is sent again, and its caller notices nothing.

`FdStore` holds duplicates of the keeper's descriptors, so that no two crashes lose them. They are given back to a
keeper that lost them. A terminal's settings are read from them; nothing else is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import time
from array import array
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from holdfast import light_json
from holdfast.errors import BadValue, HoldfastError, Unreachable
from holdfast_keeper import protocol
from holdfast_keeper.protocol import Message

_NO_ANSWER = "the keeper does not answer"
_SEE = "holdfast doctor"
_HELLO_BUDGET = 10.0
#: Until a keeper that was asked for a sign of life must have answered.
_SIGN_BUDGET = 5.0
#: The rids of every hello and of every request for a sign of life; other requests count from 1.
_HELLO, _SIGN = 0, -1
_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 1.0
#: A connection that lasted for so many pauses did not end at once: the next pause is short again.
_STEADY = 10

#: Of the descriptor channel.
_HEADER_SIZE = 4096
_CONTROL_SIZE = socket.CMSG_LEN(16 * 4)
_FETCHED_AT_ONCE = 16
_FD_FIRST_PAUSE = 0.01
#: A deposit is safe with the kernel; fetching it at once would take time from the start that it belongs to.
_FETCH_PAUSE = 0.03
#: After a deposit that came without its descriptors: before all are fetched again. Doubles up to the longest.
_FIRST_MISSED_PAUSE = 0.25
_LONGEST_MISSED_PAUSE = 30.0
#: The release of a keeper that does not name its own.
UNNAMED = "0"

#: Writes one line to the daemon's log: an event, and its fields by name.
Note = Callable[..., None]
Descriptors = dict[str, int]


class Refused(Exception):
    """The keeper refused a request."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class PlaceGone(OSError):
    """The place does not exist any more: its processes have ended, and how is not known."""


class _Request:
    __slots__ = ("frame", "can_be_repeated", "answer", "was_sent")

    def __init__(self, message: Message, raw: Sequence[bytes], answer: asyncio.Future[Message]) -> None:
        """Raises BadValue when the message is too long."""
        self.frame = _frame(message, raw)
        self.can_be_repeated = _can_be_repeated(message)
        self.answer = answer
        self.was_sent = False


class KeeperLink:
    """One keeper, over as many connections as it takes. `hello` has the arguments of the `hello` request.

    `connect` opens a control stream. It raises OSError when there is no keeper just now, HoldfastError for a reason
    that the user has to mend, and PlaceGone when there will be none. `outage`: without a keeper for that many seconds,
    requests are no longer queued but refused.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[socket.socket]], hello: Message, note: Note, outage: float = 15.0
    ) -> None:
        self._open_stream = connect
        self._outage = outage
        #: Called when it becomes reachable, and when it is not any more.
        self.on_change: Callable[[bool], None] = _ignore_change
        self._awaiting: list[asyncio.Future[None]] = []
        self._hello = hello
        self._note = note
        self._on_hello: Callable[[Message], None] = _ignore
        self._on_fact: Callable[[Message], None] = _ignore
        #: Facts that came after a hello that is still being compared; None when none is.
        self._held_facts: list[Message] | None = None
        self._rids = itertools.count(1)
        self._open: dict[int, _Request] = {}
        self._connection: _KeeperConnection | None = None
        self._has_given_up = True
        self._giving_up: asyncio.TimerHandle | None = None
        #: The backend, for messages; None for this machine.
        self.backend: str | None = None
        #: Since when there has been no connection, and why the last attempt failed; None while there is one.
        self.lost_at: float | None = None
        self.trouble: str | None = None
        #: What the keeper said of itself last: pid, anchor_pid, cgroup, version, release, offers.
        self.about: Message = {}
        #: Without a sign of life for so many seconds while requests are open, the keeper is asked for one. A keeper
        #: that hangs counts as unreachable then. None: requests wait for it.
        self.silence_limit: float | None = None
        #: Called when it hangs, before the connection is closed.
        self.on_silence: Callable[[], None] = lambda: None
        self._watch: asyncio.TimerHandle | None = None
        self._sign_asked_at: float | None = None

    @property
    def release(self) -> str | None:
        """The release of keeper and anchor; UNNAMED for the first ones, None where no keeper has answered yet."""
        return (self.about.get("release") or UNNAMED) if self.about else None

    @property
    def is_reachable(self) -> bool:
        """False before the first keeper has answered, and without one for longer than a restart of it takes."""
        return bool(self.about) and not self._has_given_up

    async def answered(self) -> None:
        """Returns when the keeper is connected. Raises what the next attempt to connect raises."""
        if self._connection is None or not self._connection.is_open:
            answered = asyncio.get_running_loop().create_future()
            self._awaiting.append(answered)
            await answered

    async def request(self, op: str, **arguments: Any) -> Message:
        """The keeper's answer. Raises Refused when it refuses, Unreachable when there is no keeper."""
        return await self.begin(op, **arguments)

    def start(self, process_id: str, spec: Message) -> asyncio.Future[Message]:
        """Request a start. Command and environment are passed as they are to be executed, so the keeper parses less."""
        if protocol.RAW not in self.about.get("offers", ()):
            return self.begin("start", id=process_id, spec=spec)
        words = [*spec["argv"], *[f"{name}={value}" for name, value in spec["env"].items()]]
        block = os.fsencode("\0".join([*words, ""]))
        launch = {name: spec[name] for name in protocol.LAUNCH_FIELDS if name in spec}
        numbers = {"argc": len(spec["argv"]), "words": len(words)}
        return self.begin("start", (light_json.dump_bytes(spec), block), id=process_id, spec=launch, **numbers)

    def begin(self, op: str, raw: Sequence[bytes] = (), **arguments: Any) -> asyncio.Future[Message]:
        """As request, for a caller that goes on meanwhile: when this returns, the request is sent.

        Raises BadValue, at once, for a request that is too long.
        """
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        if self._has_given_up:
            answer.set_exception(self._unanswered())
            return answer
        rid = next(self._rids)
        request = _Request({"rid": rid, "op": op, **arguments}, raw, answer)
        self._open[rid] = request
        answer.add_done_callback(lambda _: self._open.pop(rid, None))
        self._send(request)
        return answer

    def hold_facts(self) -> list[Message]:
        """Hold back the facts that come from now on, and drop those that were held back before."""
        self._held_facts = []
        return self._held_facts

    def release_facts(self, held: list[Message]) -> None:
        """Give out what was held back, in its order; facts that come later are given out at once."""
        if self._held_facts is held:
            self._held_facts = None
            for fact in held:
                self._on_fact(fact)

    async def run(self, on_hello: Callable[[Message], None], on_fact: Callable[[Message], None]) -> None:
        """Keep a connection to the keeper, for ever. Cancel it to close that. The callbacks must not wait.

        Raises PlaceGone when there will be no keeper any more.
        """
        self._on_hello, self._on_fact = on_hello, on_fact
        pause = _FIRST_PAUSE
        self._has_given_up = False
        self._lost()
        try:
            while True:
                try:
                    connection = await self._connect()
                    began = time.monotonic()
                    try:
                        await connection.cut
                    finally:
                        connection.close()
                    self._note("keeper-lost")
                    if time.monotonic() - began > min(pause * _STEADY, _LONGEST_PAUSE):
                        pause = _FIRST_PAUSE
                    else:  # not at full speed, where each connection ends at once
                        self._lost()
                        await asyncio.sleep(pause)
                        pause = min(pause * 2, _LONGEST_PAUSE)
                except PlaceGone as gone:
                    self._settle_awaiting(gone)
                    raise
                except (OSError, TimeoutError, Refused, HoldfastError) as failed:
                    self._note("keeper-unreachable", why=repr(failed))
                    self.trouble = _reason(failed)
                    self._settle_awaiting(failed)
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
                finally:
                    self._lost()
        finally:
            if self._giving_up is not None:
                self._giving_up.cancel()
            self._give_up()
            self._settle_awaiting(self._unanswered())

    def _settle_awaiting(self, failed: Exception | None) -> None:
        awaiting, self._awaiting = self._awaiting, []
        for answered in awaiting:
            if answered.done():
                continue
            if failed is None:
                answered.set_result(None)
            else:
                answered.set_exception(failed)

    async def _connect(self) -> _KeeperConnection:
        """A connection on which the keeper has answered the hello, and all open requests were sent again."""
        sock = await self._open_stream()
        loop = asyncio.get_running_loop()
        transport, connection = await loop.create_unix_connection(
            lambda: _KeeperConnection(self._on_message, self._note), sock=sock
        )
        try:
            async with asyncio.timeout(_HELLO_BUDGET):
                connection.send(_frame({"rid": _HELLO, "op": "hello", **self._hello}))
                await connection.greeted
        except BaseException:
            transport.abort()
            raise
        return connection

    def _on_message(self, connection: _KeeperConnection, message: Message) -> None:
        rid = message.get("rid")
        if rid is None:
            if self._held_facts is None:
                self._on_fact(message)
            else:
                self._held_facts.append(message)
        elif rid == _HELLO:
            self._greeted(connection, message)
        elif (request := self._open.get(rid)) is not None and not request.answer.done():
            _settle(request.answer, message)

    def _greeted(self, connection: _KeeperConnection, message: Message) -> None:
        """The hello comes first: its content is applied before any fact or answer that follows it."""
        if "error" in message:
            connection.greeted.set_exception(_refusal(message))
            return
        was_reachable = self.is_reachable
        self.about = {key: value for key, value in message["ok"].items() if key != "live"}
        self._connection = connection
        self.lost_at = self.trouble = None
        self._has_given_up = False
        if self._giving_up is not None:
            self._giving_up.cancel()
        connection.greeted.set_result(None)
        self._on_hello(message["ok"])
        self._settle_awaiting(None)
        if not was_reachable:
            self.on_change(True)
        for request in list(self._open.values()):
            self._send(request)

    def _send(self, request: _Request) -> None:
        """Now, or on the next connection."""
        if self._connection is not None and self._connection.is_open:
            request.was_sent = True
            self._connection.send(request.frame)
            if self._watch is None and self.silence_limit is not None:
                self._watch_for(self.silence_limit)

    def check(self) -> None:
        """Ask for a sign of life now."""
        if self._watch is not None:
            self._watch.cancel()
        if self._connection is not None and self._connection.is_open:
            self._ask_for_sign(self._connection)

    def _watch_for(self, seconds: float) -> None:
        self._watch = asyncio.get_running_loop().call_later(seconds, self._look)

    def _ask_for_sign(self, connection: _KeeperConnection) -> None:
        self._sign_asked_at = time.monotonic()
        connection.send(_frame({"rid": _SIGN, "op": "usage"}))
        self._watch_for(_SIGN_BUDGET)

    def _look(self) -> None:
        """Has it sent anything lately?"""
        self._watch = None
        connection, limit = self._connection, self.silence_limit
        asked_at, self._sign_asked_at = self._sign_asked_at, None
        if connection is None or not connection.is_open or limit is None:
            return
        if asked_at is not None and connection.heard_at < asked_at:
            self._note("keeper-silent")
            self.on_silence()
            connection.close()
        elif self._open:
            if time.monotonic() - connection.heard_at < limit:
                self._watch_for(limit)
            else:
                self._ask_for_sign(connection)

    def _lost(self) -> None:
        """No connection: what was sent and may not be repeated has failed, the rest waits for a while."""
        self._connection = None
        self.lost_at = self.lost_at or time.time()
        for request in list(self._open.values()):
            if request.was_sent and not request.can_be_repeated and not request.answer.done():
                request.answer.set_exception(Unreachable("the keeper went away; whether it was done is not known"))
        if self._giving_up is None or self._giving_up.cancelled():
            self._giving_up = asyncio.get_running_loop().call_later(self._outage, self._give_up)

    def _unanswered(self) -> Unreachable:
        if self.backend is None:
            return Unreachable(_NO_ANSWER, next=_SEE)
        why = f": {self.trouble}" if self.trouble else ""
        return Unreachable(f"the place of backend {self.backend} does not answer{why}", next="holdfast backends")

    def _give_up(self) -> None:
        was_reachable = self.is_reachable
        self._has_given_up = True
        for request in list(self._open.values()):
            if not request.answer.done():
                request.answer.set_exception(self._unanswered())
        if was_reachable:
            self.on_change(False)


class _KeeperConnection(asyncio.Protocol):
    """`greeted` when the keeper has answered the hello, `cut` when the connection is over."""

    def __init__(self, on_message: Callable[[_KeeperConnection, Message], None], note: Note) -> None:
        loop = asyncio.get_running_loop()
        self._note = note
        self._on_message = on_message
        self._decoder = protocol.Decoder(light_json.load_bytes)
        self._transport: asyncio.Transport | None = None
        self.greeted: asyncio.Future[None] = loop.create_future()
        self.cut: asyncio.Future[None] = loop.create_future()
        self.heard_at = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    @property
    def is_open(self) -> bool:
        """False as soon as the loop knows it, which is before `cut`: uvloop raises on a write to a closed transport."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, frame: bytes) -> None:
        assert self._transport is not None
        self._transport.write(frame)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self.heard_at = time.monotonic()
        try:
            messages = self._decoder.feed(data)
        except protocol.ProtocolError as broken:
            self._note("keeper-unintelligible", why=str(broken))
            self.close()
            return
        for message in messages:
            self._on_message(self, message)

    def connection_lost(self, why: Exception | None) -> None:
        if not self.greeted.done():
            self.greeted.set_exception(ConnectionResetError("cut before the keeper answered the hello"))
        if not self.cut.done():
            self.cut.set_result(None)


def _ignore(message: Message) -> None:
    return


def _ignore_change(is_reachable: bool) -> None:
    return


def _frame(message: Message, raw: Sequence[bytes] = ()) -> bytes:
    try:
        return protocol.encode(message, raw, light_json.dump_bytes)
    except protocol.ProtocolError as too_long:
        what = "the command and its environment are" if message["op"] == "start" else f"this {message['op']} is"
        raise BadValue(f"{what} too long") from too_long


def _can_be_repeated(message: Message) -> bool:
    """Whether sending it twice does no more than sending it once."""
    op = message["op"]
    return bool(op != "signal" and not (op == "write" and message["at"] is None))


def _settle(answer: asyncio.Future[Message], message: Message) -> None:
    if "error" in message:
        answer.set_exception(_refusal(message))
    else:
        answer.set_result(message["ok"])


def _reason(failed: Exception) -> str:
    if isinstance(failed, HoldfastError):
        return failed.message
    return (failed.strerror if isinstance(failed, OSError) else None) or str(failed) or type(failed).__name__


def _refusal(message: Message) -> Refused:
    error = message["error"]
    return Refused(error.get("code", "failed"), error.get("message", "the keeper refused"))


class FdStore:
    """`connect` opens a descriptor channel to the keeper that is there. It raises OSError when there is none."""

    def __init__(self, connect: Callable[[], Awaitable[socket.socket]], note: Note) -> None:
        self._connect = connect
        self._note = note
        self._hurry = asyncio.Event()
        self.held: dict[str, Descriptors] = {}
        #: The pid that they belong to: another pid of the same process is another run.
        self._pids: dict[str, int | None] = {}
        #: When to connect anew, to get what could not be taken at the limit of open files.
        self._renew_at: float | None = None
        self._missed_pause = _FIRST_MISSED_PAUSE

    def hurry(self) -> None:
        """A keeper has connected: try to reach it now."""
        self._hurry.set()

    async def run(self) -> None:
        """Hold what the keeper deposits, for ever; on a new connection whenever the last one was cut."""
        pause = _FD_FIRST_PAUSE
        while True:
            self._hurry.clear()
            if await self._serve_connection():
                pause = _FD_FIRST_PAUSE
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._hurry.wait()
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _serve_connection(self) -> bool:
        """Until the connection is cut; whether there was one."""
        try:
            sock = await self._connect()
        except OSError:
            return False
        with sock:
            return await self._exchange(sock)

    def hold(self, process_id: str, names: list[str], fds: list[int], pid: int | None = None) -> None:
        if process_id in self.held and self._pids.get(process_id) != pid:
            self.drop(process_id, None)
        self._pids[process_id] = pid
        mine = self.held.setdefault(process_id, {})
        for name, fd in zip(names, fds, strict=False):
            if name in mine:
                os.close(mine[name])
            mine[name] = fd

    def drop(self, process_id: str, names: list[str] | None) -> None:
        """Close some of its descriptors; all of them with None."""
        mine = self.held.get(process_id, {})
        for name in list(mine) if names is None else names:
            fd = mine.pop(name, None)
            if fd is not None:
                os.close(fd)
        if not mine:
            self.held.pop(process_id, None)
            self._pids.pop(process_id, None)

    async def _exchange(self, sock: socket.socket) -> bool:
        """Offer what is held, then take deposits until the connection is cut; whether the offer was sent."""
        self._renew_at = None
        try:
            for process_id, fds in list(self.held.items()):
                header = {"op": "offer", "id": process_id, "names": list(fds), "pid": self._pids.get(process_id)}
                await _send_fds(sock, header, list(fds.values()))
            await _send_fds(sock, {"op": "offered"}, [])
        except OSError:
            return False
        await self._listen(sock)
        return True

    async def _listen(self, sock: socket.socket) -> None:
        """Take what is deposited, until the connection is cut, or until something missed is to be fetched."""
        loop = asyncio.get_running_loop()
        whole_at: float | None = loop.time() + _LONGEST_PAUSE
        while True:
            try:
                async with asyncio.timeout_at(self._renew_at or whole_at):
                    await _is_ready(sock, loop.add_reader, loop.remove_reader)
            except TimeoutError:
                if self._renew_at is not None:
                    return
                whole_at, self._missed_pause = None, _FIRST_MISSED_PAUSE
                continue
            await asyncio.sleep(_FETCH_PAUSE)
            with contextlib.suppress(BlockingIOError):
                for number in itertools.count(1):
                    if not self._fetch(sock):
                        return
                    if number % _FETCHED_AT_ONCE == 0:
                        await asyncio.sleep(0)  # others get their turn

    def _fetch(self, sock: socket.socket) -> bool:
        """Take the next deposit; whether the connection still stands. Raises BlockingIOError when there is none."""
        try:
            data, control, flags, _ = sock.recvmsg(_HEADER_SIZE, _CONTROL_SIZE, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return True  # the keeper ended with something unread; the kernel says so once, before what it deposited
        except ConnectionError:
            return False
        fds = [fd for _, _, rights in control for fd in array("i", rights[: len(rights) // 4 * 4])]
        if flags & socket.MSG_CTRUNC:
            self._miss(light_json.load_bytes(data), fds)
        elif data:
            self._take(light_json.load_bytes(data), fds)
        return bool(data)

    def _miss(self, header: dict[str, Any], fds: list[int]) -> None:
        """Not all descriptors of a deposit have come: a keeper could not go on with some of them."""
        for fd in fds:
            os.close(fd)
        if self._pids.get(header["id"]) != header.get("pid"):
            self.drop(header["id"], None)
        if self._renew_at is None:
            if self._missed_pause == _FIRST_MISSED_PAUSE:
                self._note("descriptors-refused", why="the limit of open files is reached")
            self._renew_at = asyncio.get_running_loop().time() + self._missed_pause
            self._missed_pause = min(self._missed_pause * 2, _LONGEST_MISSED_PAUSE)

    def _take(self, header: dict[str, Any], fds: list[int]) -> None:
        if header["op"] == "hold":
            self.hold(header["id"], header["names"], fds, header.get("pid"))
        elif header["op"] == "drop":
            self.drop(header["id"], header.get("names"))


async def _send_fds(sock: socket.socket, header: dict[str, Any], fds: list[int]) -> None:
    data, loop = json.dumps(header).encode(), asyncio.get_running_loop()
    while True:
        try:
            socket.send_fds(sock, [data], fds)
            return
        except BlockingIOError:
            await _is_ready(sock, loop.add_writer, loop.remove_writer)


async def _is_ready(sock: socket.socket, add: Callable[..., object], remove: Callable[..., object]) -> None:
    ready = asyncio.Event()
    add(sock, ready.set)
    try:
        await ready.wait()
    finally:
        remove(sock)
