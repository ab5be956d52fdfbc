"""The connection to the relay of a place, over stdin and stdout of a program such as `ssh` or `podman exec`.

It is opened by the first call and again after it was cut. A peer that hangs is noticed: when nothing has come for a
while after something was sent, it is asked for a sign of life.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import select
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.errors import BadValue, HoldfastError, Unreachable, from_wire
from holdfast.light_json import dump_bytes, load_bytes
from holdfast.places.base import PlaceGone, Refused, end_program
from holdfast.places.keeper_link import Note
from holdfast.places.relay.program import MARK, RELAY_VERSION
from holdfast_keeper import protocol
from holdfast_keeper.protocol import Message

#: Until a relay that was just started says hello.
_HELLO_BUDGET = 20.0
#: Until a call is answered; some take longer for good reasons.
_CALL_BUDGET = 10.0
#: Silence after something was sent, before the peer is asked for a sign of life, and until it must have answered.
_SILENCE_LIMIT = 3.0
_PONG_BUDGET = 7.0
#: Between two attempts to open the link.
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0
#: A step of an attempt that takes longer is logged, and again after as long.
_STEP_LIMIT = 5.0
#: Between the end of the program and the end of its output, which other processes may have open.
_OUTPUT_BUDGET = 2.0

#: What is read while a message is expected: behind it may come bytes of a file, which need not pass through here.
_READ_SIZE = 4 << 10
_PIPE_SIZE = 1 << 20
#: While this much is expected, the pipe is read after a pause in which it fills: that takes less time in all.
_BULK = 64 << 10
_BULK_PAUSE = 0.001
_SET_PIPE_SIZE = 1031
_ERROR_TAIL = 2000
#: What may come before the relay.
_MOST_NOISE = 1 << 20
_LENGTH = struct.Struct("!I")


class RelayProcess(NamedTuple):
    """A program of this machine whose stdin and stdout are those of a relay."""

    process: asyncio.subprocess.Process
    source: int
    """What the relay writes."""
    target: int
    """What it reads."""
    errors: int
    """A file with what the program and the relay wrote to stderr."""

    def error_text(self) -> str:
        """The last line on stderr; empty when there is none."""
        size = os.fstat(self.errors).st_size
        text = os.pread(self.errors, _ERROR_TAIL, max(0, size - _ERROR_TAIL)).decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return "".join(one if one.isprintable() else " " for one in lines[-1]) if lines else ""


async def start_relay(argv: Sequence[str], environ: Mapping[str, str]) -> RelayProcess:
    """Run a program that connects its stdin and stdout to a relay. Raises OSError."""
    errors = os.memfd_create("relay-errors", os.MFD_CLOEXEC)
    child_in, target = os.pipe2(os.O_CLOEXEC)
    source, child_out = os.pipe2(os.O_CLOEXEC)
    try:
        os.set_blocking(source, False)
        with contextlib.suppress(OSError):
            _resize_pipe(source)
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=child_in, stdout=child_out, stderr=errors, env=dict(environ), start_new_session=True
        )
    except BaseException:
        for fd in (source, target, errors):
            os.close(fd)
        raise
    finally:
        os.close(child_in)
        os.close(child_out)
    return RelayProcess(process, source, target, errors)


def _resize_pipe(fd: int) -> None:
    import fcntl

    fcntl.fcntl(fd, _SET_PIPE_SIZE, _PIPE_SIZE)


class FrameReader:
    """Reads the messages of a relay, in a thread. `stop` ends that from another thread."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._buffer = bytearray()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        self._poll.register(self._wake, select.POLLIN)
        #: While bytes go from the source to a file, nothing can be written to the source: they go through this pipe.
        self._passage = os.pipe2(os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            _resize_pipe(self._passage[0])
        self.heard_at = time.monotonic()

    def stop(self) -> None:
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        for fd in (self._wake, self._source, *self._passage):
            os.close(fd)

    def __iter__(self) -> Iterator[Message]:
        """Until the end. Raises OSError and ProtocolError."""
        self._skip_to_mark()
        raw: list[bytes] = []
        while True:
            (head,) = _LENGTH.unpack(self._take(_LENGTH.size))
            length = head & ~protocol.RAW_BIT
            if length > protocol.MAX_FRAME:
                raise protocol.ProtocolError(f"a frame of {length} bytes announced")
            body = self._take(length)
            if head & protocol.RAW_BIT:
                raw.append(body)
                continue
            try:
                message = load_bytes(body)
            except ValueError as broken:
                raise protocol.ProtocolError("a frame that is not JSON") from broken
            if not isinstance(message, dict):
                raise protocol.ProtocolError("a frame that is not an object")
            if raw:
                message["raw"], raw = raw, []
            yield message

    def _skip_to_mark(self) -> None:
        while (at := self._buffer.find(MARK)) < 0:
            if len(self._buffer) > _MOST_NOISE:
                raise protocol.ProtocolError("the place does not start the relay")
            self._buffer += self._read(_READ_SIZE)
        del self._buffer[: at + len(MARK)]

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._buffer += self._read(max(_READ_SIZE, count - len(self._buffer)))
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def _read(self, size: int) -> bytes:
        self.wait()
        try:
            data = os.read(self._source, size)
        except BlockingIOError:
            return b""
        if not data:
            raise ConnectionResetError("the relay has ended")
        return data

    def copy_to(self, file: int, at: int, count: int) -> None:
        """Write the next bytes to a file at an offset."""
        while count:
            if self._buffer:
                with memoryview(self._buffer) as view:
                    done = os.pwrite(file, view[:count], at)
                del self._buffer[:done]
            else:
                self.wait()
                if count > _BULK:
                    time.sleep(_BULK_PAUSE)
                try:
                    done = left = os.splice(self._source, self._passage[1], count, flags=os.SPLICE_F_NONBLOCK)
                except BlockingIOError:
                    continue
                if not done:
                    raise ConnectionResetError("the relay has ended")
                while left:
                    left -= os.splice(self._passage[0], file, left, offset_dst=at + done - left)
            at += done
            count -= done

    def wait(self) -> None:
        """Until there is something to read. Raises ConnectionAbortedError when this was stopped."""
        ready = dict(self._poll.poll())
        if self._wake in ready:
            raise ConnectionAbortedError("the connection was closed")
        self.heard_at = time.monotonic()


class RelayPeer(asyncio.BaseProtocol):
    """One relay, until it is cut. `on_message` gets what is no answer, in the thread that reads."""

    def __init__(self, relay: RelayProcess, on_message: Callable[[FrameReader, Message], bool]) -> None:
        self._loop = asyncio.get_running_loop()
        self._relay = relay
        self._on_message = on_message
        self._reader = FrameReader(relay.source)
        self._transport: asyncio.WriteTransport | None = None
        self._rids = itertools.count(1)
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._on_start: dict[int, Callable[[int], None]] = {}
        self._sent_at = 0.0
        self._asked_at: float | None = None
        self._watch: asyncio.TimerHandle | None = None
        self.hello: asyncio.Future[Message] = self._loop.create_future()
        self.cut: asyncio.Future[str] = self._loop.create_future()
        self._closing: asyncio.Future[None] | None = None
        self._ending: asyncio.Future[None] | None = None
        self._thread = threading.Thread(target=self._read, name="relay", daemon=True)

    async def begin(self) -> None:
        pipe = os.fdopen(self._relay.target, "wb", 0)
        self._transport, _ = await self._loop.connect_write_pipe(lambda: self, pipe)
        self._thread.start()
        self._ending = asyncio.ensure_future(self._watch_end())

    async def _watch_end(self) -> None:
        """A control master of ssh that hangs may keep the output of a client open that has ended."""
        await self._relay.process.wait()
        await asyncio.sleep(_OUTPUT_BUDGET)
        self.lose("the relay has ended")

    @property
    def is_open(self) -> bool:
        return not self.cut.done()

    def errors(self) -> str:
        """What the program and the relay wrote to stderr, before this is closed."""
        return os.pread(self._relay.errors, _MOST_NOISE, 0).decode(errors="replace")

    @property
    def exit_code(self) -> int:
        """Of the program; 0 while it runs."""
        return self._relay.process.returncode or 0

    # Called by the transport.

    def connection_lost(self, why: Exception | None) -> None:
        self.lose("the relay has ended")

    # Sending.

    def send(self, message: Message, raw: Sequence[bytes] = ()) -> None:
        """Raises ProtocolError when it is too long."""
        frame = protocol.encode(message, raw, dump_bytes)
        if self._transport is None or self._transport.is_closing():
            return
        try:
            self._transport.write(frame)
        except RuntimeError:  # uvloop raises it when the pipe was just closed
            self.lose("the relay has ended")
            return
        self._sent_at = time.monotonic()
        if self._watch is None:
            self._watch = self._loop.call_later(_SILENCE_LIMIT, self._look)

    def _look(self) -> None:
        """Something was sent a while ago: has anything come since?"""
        self._watch = None
        asked_at, self._asked_at = self._asked_at, None
        if asked_at is not None and self._reader.heard_at < asked_at:
            self.lose("the place does not answer")
        elif self._reader.heard_at < self._sent_at and self.is_open:
            self._asked_at = time.monotonic()
            self._watch = self._loop.call_later(_PONG_BUDGET, self._look)
            self.send({"ping": 1})

    def next_rid(self) -> int:
        return next(self._rids)

    async def call(
        self,
        op: str,
        arguments: Message,
        budget: float | None,
        on_start: Callable[[int], None] | None = None,
        rid: int | None = None,
    ) -> Any:
        if not self.is_open:
            raise Unreachable(self.cut.result())
        rid = self.next_rid() if rid is None else rid
        answer = self._open[rid] = self._loop.create_future()
        if on_start is not None:
            self._on_start[rid] = on_start
        try:
            self.send({"rid": rid, "op": op, **arguments})
            async with asyncio.timeout(budget):
                return await answer
        except protocol.ProtocolError as too_long:
            raise BadValue("this is too long for a message to the place") from too_long
        except TimeoutError:
            if answer.done() and not answer.cancelled():
                raise
            raise Unreachable(f"the place has not answered within {budget:g} s") from None
        finally:
            if not answer.done() or answer.cancelled():
                self.send({"cancel": rid})
            self._open.pop(rid, None)
            self._on_start.pop(rid, None)

    # Receiving.

    def _read(self) -> None:
        why = "the relay has ended"
        try:
            for message in self._reader:
                if not self._on_message(self._reader, message):
                    self._loop.call_soon_threadsafe(self._take, message)
                elif "ack" in message:
                    self._loop.call_soon_threadsafe(self.send, {"ack": message["ack"]})
        except (OSError, protocol.ProtocolError) as failed:
            why = str(failed)
        except Exception as failed:  # noqa: BLE001 - the top of the thread
            why = f"{type(failed).__name__}: {failed}"
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.lose, why)

    def _take(self, message: Message) -> None:
        try:
            self._apply(message)
        except (KeyError, TypeError, ValueError, AttributeError) as wrong:
            self.lose(f"the relay there does not keep to the protocol: {wrong!r}")

    def _apply(self, message: Message) -> None:
        if "hello" in message and not self.hello.done():
            self.hello.set_result(message["hello"])
            return
        rid = message.get("rid", 0)
        if "started" in message:
            if (on_start := self._on_start.get(rid)) is not None:
                on_start(message["started"])
        elif (answer := self._open.get(rid)) is not None and not answer.done():
            if "error" in message:
                answer.set_exception(_failure(message["error"]))
            else:
                answer.set_result(message.get("ok"))

    # The end.

    def lose(self, why: str) -> None:
        """Nothing more is sent or taken."""
        if self.cut.done():
            return
        why = self._relay.error_text() or why if why == "the relay has ended" else why
        self.cut.set_result(why)
        if self._ending is not None:
            self._ending.cancel()
        if self._watch is not None:
            self._watch.cancel()
        for answer in list(self._open.values()):
            if not answer.done():
                answer.set_exception(Unreachable(why))
        if not self.hello.done():
            self.hello.set_exception(ConnectionResetError(why))
            self.hello.exception()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.abort()
        self._reader.stop()
        with contextlib.suppress(ProcessLookupError):
            self._relay.process.kill()

    async def close(self) -> None:
        """When this returns, the thread has ended, and with it all that was written by it. May be called again."""
        if self._closing is None:  # each descriptor is closed once: its number may be another one's afterwards
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self.lose("the connection was closed")
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join)
        await end_program(self._relay.process)
        self._reader.close()
        os.close(self._relay.errors)


def _failure(error: Message) -> Exception:
    kind, message = error.get("kind"), str(error.get("message"))
    if kind == "refused":
        return Refused(error["code"], message)
    if kind == "holdfast":
        return from_wire(error)
    if kind == "os":
        return OSError(error.get("number") or 0, message)
    return HoldfastError(f"the relay failed: {message}")


class RelayLink:
    """The relay of a place, over as many connections as it takes.

    `open_relay` starts it, and raises OSError when that cannot be done now. `begin` is awaited with each new connection
    before it is used; `on_message` gets each message in the thread that reads, and returns whether it has taken it.
    """

    def __init__(self, open_relay: Callable[[], Awaitable[RelayProcess]], note: Note) -> None:
        self._open_relay = open_relay
        self._note = note
        self._peer: RelayPeer | None = None
        self._opening: asyncio.Task[RelayPeer] | None = None
        self._pause = 0.0
        self._not_before = 0.0
        self._hurry = asyncio.Event()
        self._is_closed = False
        #: A call has found that the place is gone, and `open` has not said so yet.
        self._gone: PlaceGone | None = None
        self._closing: asyncio.Task[None] | None = None
        self._late: asyncio.TimerHandle | None = None
        #: What the relay said of itself last.
        self.about: Message = {}
        #: Why there is no connection; None while there is one, or was never one.
        self.trouble: OSError | None = None
        self.begin: Callable[[RelayPeer], Awaitable[None]] | None = None
        #: Says by the exit code of the program, and by what it wrote to stderr, why the relay could not be reached.
        self.explain: Callable[[int, str], Awaitable[OSError | None]] | None = None
        self.on_message: Callable[[FrameReader, Message], bool] = lambda reader, message: False
        self.on_cut: Callable[[], None] = lambda: None

    @property
    def is_open(self) -> bool:
        return self._peer is not None and self._peer.is_open

    def hurry(self) -> None:
        """Try now, although the last attempt has just failed."""
        self._not_before = 0.0
        self._hurry.set()

    async def call(
        self,
        op: str,
        budget: float | None = _CALL_BUDGET,
        on_start: Callable[[int], None] | None = None,
        **arguments: Any,
    ) -> Any:
        """The relay's answer. Raises Unreachable; Refused, OSError or HoldfastError where the relay raised that."""
        peer = self._peer
        if peer is None or not peer.is_open:
            if time.monotonic() < self._not_before and self.trouble is not None:
                raise Unreachable(str(self.trouble))
            try:
                async with asyncio.timeout(budget):
                    peer = await self._opened()
            except TimeoutError:
                raise Unreachable("the place cannot be reached in time") from None
            except OSError as failed:
                raise Unreachable(str(failed)) from failed
        return await peer.call(op, arguments, budget, on_start)

    async def open(self) -> RelayPeer:
        """A connection, as soon as the pause after the last failure is over. Raises OSError, TimeoutError."""
        while self._opening is None and not self.is_open and (left := self._not_before - time.monotonic()) > 0:
            self._hurry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._hurry.wait()
        try:
            return await self._opened()
        except PlaceGone:
            self._gone = None
            raise

    def open_soon(self) -> None:
        """Open it in the background, where that is due."""
        if not self.is_open and self._opening is None and time.monotonic() >= self._not_before:
            self._begin_opening()

    def _begin_opening(self) -> asyncio.Task[RelayPeer]:
        self._opening = asyncio.ensure_future(self._connect())
        self._opening.add_done_callback(self._finished)
        return self._opening

    def _begin_step(self, step: str | None) -> None:
        """What an attempt does from now on; None when it is over."""
        if self._late is not None:
            self._late.cancel()
            self._late = None
        if step is not None:
            self._late = asyncio.get_running_loop().call_later(_STEP_LIMIT, self._log_step, step, time.monotonic())

    def _log_step(self, step: str, began: float) -> None:
        self._note("relay-slow", step=step, seconds=round(time.monotonic() - began))
        self._late = asyncio.get_running_loop().call_later(_STEP_LIMIT, self._log_step, step, began)

    async def _opened(self) -> RelayPeer:
        if self._peer is not None and self._peer.is_open:
            return self._peer
        try:
            return await asyncio.shield(self._opening or self._begin_opening())
        except asyncio.CancelledError:
            if self._is_closed:
                raise ConnectionAbortedError("the place is closed") from None
            raise

    def _finished(self, opening: asyncio.Task[RelayPeer]) -> None:
        self._opening = None
        self._begin_step(None)
        if opening.cancelled():
            return
        failed = opening.exception()
        if failed is None:
            self._pause, self.trouble = 0.0, None
            return
        self._gone = failed if isinstance(failed, PlaceGone) else None
        self._pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, self._pause * 2))
        self._not_before = time.monotonic() + self._pause
        self.trouble = failed if isinstance(failed, OSError) else OSError(str(failed))
        self._note("relay-unreachable", why=str(failed))

    async def _connect(self) -> RelayPeer:
        if self._is_closed:
            raise ConnectionAbortedError("the place is closed")
        if self._gone is not None:
            raise self._gone
        if self._peer is not None:
            self._begin_step("closing the last connection")
            await self._peer.close()
            self._peer = None
        self._begin_step("starting the relay")
        peer = RelayPeer(await self._open_relay(), lambda reader, message: self.on_message(reader, message))
        self._begin_step("waiting for its hello")
        try:
            await peer.begin()
            async with asyncio.timeout(_HELLO_BUDGET):
                about = await peer.hello
            if about.get("version") != RELAY_VERSION:
                raise ConnectionError(f"the relay there speaks version {about.get('version')} of the protocol")
            self.about = about
            if self.begin is not None:
                self._begin_step("asking for keeper and logs")
                await self.begin(peer)
        except TimeoutError:
            await peer.close()
            raise TimeoutError("the relay does not answer") from None
        except HoldfastError as failed:
            await peer.close()
            raise ConnectionError(failed.message) from failed
        except RuntimeError as failed:  # uvloop raises it on a write to a pipe that was just closed
            await peer.close()
            raise ConnectionResetError(str(failed)) from failed
        except (KeyError, TypeError, ValueError, AttributeError, Refused) as wrong:
            await peer.close()
            raise ConnectionError(f"the relay there does not keep to the protocol: {wrong!r}") from wrong
        except ConnectionError as failed:
            said = peer.errors()
            await peer.close()
            found = await self.explain(peer.exit_code, said) if self.explain is not None else None
            raise found or failed from None
        except BaseException:
            await peer.close()
            raise
        self._peer = peer
        peer.cut.add_done_callback(lambda cut: self._was_cut(cut.result()))
        if not peer.is_open:
            raise ConnectionResetError(peer.cut.result())
        return peer

    def _was_cut(self, why: str) -> None:
        self.trouble = ConnectionResetError(why)
        if not self._is_closed:
            self._note("relay-lost", why=why)
        self.on_cut()

    def cut(self) -> None:
        """Give up the connection; the next call opens another one."""
        if self._peer is not None:
            self._peer.lose("the place does not answer")

    def close(self) -> None:
        self._is_closed = True
        if self._opening is not None:
            self._opening.cancel()
        if self._peer is not None:
            self._peer.lose("the place is closed")
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._closing = asyncio.get_running_loop().create_task(self._peer.close())
