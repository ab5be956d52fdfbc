"""Places whose files this machine does not see: their relay sends the bundles, which are copied as they grow.

A copy has the layout of the original, so that logs are read, watched and searched here. It is written by the thread
that reads from the relay, in the order in which the relay sends: what is said of a process comes behind its output.
After a cut, the transfer goes on from the sizes of the files.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, cast

from holdfast import files
from holdfast.errors import Unreachable
from holdfast.model.process import HeldProcess, is_id
from holdfast.places.keeper_link import Note
from holdfast.places.relay.link import FrameReader, RelayPeer
from holdfast.places.relay.mirror_source import LARGEST_PIECE, is_mirrored
from holdfast.places.remote import RemotePlace
from holdfast_keeper import bundle
from holdfast_keeper.protocol import Message, ProtocolError

_STATES = (bundle.LIVE, bundle.DONE)
_OPEN_BUDGET = 20.0
_FARTHEST = 1 << 60
#: Between two looks whether a stream that takes nothing is still open.
_LOOK_PAUSE = 0.5


class Mirror:
    """The copies of the bundles of one place. Everything blocks, and is for one thread at a time."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def sizes(self) -> Message:
        """What is there: the sizes of the files of each bundle that is not complete, and the names of the others."""
        for state in _STATES:
            os.makedirs(f"{self._directory}/{state}", mode=0o700, exist_ok=True)
        live = {name: _sizes(f"{self._directory}/{bundle.LIVE}/{name}") for name in self._names(bundle.LIVE)}
        return {"live": live, "done": self._names(bundle.DONE)}

    def take(self, reader: FrameReader, message: Message) -> bool:
        """Apply a message that concerns a bundle. False for others. Raises OSError, ProtocolError."""
        if "file" in message:
            self._append(reader, message)
        elif "put" in message:
            self._put(message)
        elif "state" in message:
            self._move(_checked_id(message["id"]), message["state"])
        elif "drop" in message:
            for name in message["drop"]:
                bundle.unlink(f"{self._of(message)}/{_checked_name(name)}")
        elif "gone" in message:
            for state in _STATES:
                bundle.remove(f"{self._directory}/{state}/{_checked_id(message['gone'])}")
        else:
            return False
        return True

    def _names(self, state: str) -> list[str]:
        return [name for name in os.listdir(f"{self._directory}/{state}") if is_id(name)]

    def _of(self, message: Message) -> str:
        process_id = _checked_id(message["id"])
        found = bundle.find(self._directory, process_id)
        return found if found is not None else self._move(process_id, bundle.LIVE)

    def _move(self, process_id: str, state: str) -> str:
        if state not in _STATES:
            raise ProtocolError("an unknown state of a bundle")
        target = f"{self._directory}/{state}/{process_id}"
        found = bundle.find(self._directory, process_id)
        if found is None:
            os.makedirs(target, mode=0o700)
        elif found != target:
            os.rename(found, target)
        return target

    def _append(self, reader: FrameReader, message: Message) -> None:
        at, size, mtime = (int(message[name]) for name in ("at", "size", "mtime"))
        if not (0 <= at <= _FARTHEST and 0 <= size <= LARGEST_PIECE):
            raise ProtocolError("a part of a file that is too long")
        path = f"{self._of(message)}/{_checked_name(message['file'])}"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            reader.copy_to(fd, at, size)
            os.utime(fd, ns=(mtime, mtime))
        finally:
            os.close(fd)

    def _put(self, message: Message) -> None:
        mtime = int(message["mtime"])
        path = f"{self._of(message)}/{_checked_name(message['put'])}"
        (content,) = message["raw"]
        files.replace(path, content, finish=lambda fd: os.utime(fd, ns=(mtime, mtime)))


def _sizes(directory: str) -> dict[str, int]:
    with os.scandir(directory) as entries:
        return {entry.name: entry.stat().st_size for entry in entries if is_mirrored(entry.name)}


def _checked_id(value: Any) -> str:
    """What comes from another machine is no path until it was checked."""
    if not isinstance(value, str) or not is_id(value):
        raise ProtocolError("a bundle without a valid id")
    return value


def _checked_name(value: Any) -> str:
    if not isinstance(value, str) or not is_mirrored(value):
        raise ProtocolError("a file that no bundle has")
    return value


class _StreamEnd(asyncio.Protocol):
    """The end of a control stream from which the relay is fed."""

    def __init__(self, number: int, peer: RelayPeer, on_end: Callable[[int], None]) -> None:
        self._number = number
        self._peer = peer
        self._on_end = on_end
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._peer.send({"stream": self._number}, [data])

    def connection_lost(self, why: Exception | None) -> None:
        if self._peer.is_open:
            self._peer.send({"stream": self._number, "end": True})
        self._on_end(self._number)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class MirroredPlace(RemotePlace):
    """A remote place whose directory here has copies of its bundles. Subclasses have `open_relay`."""

    is_mirrored = True

    def __init__(
        self, directory: str, *, hello: Message, note: Note, running: Callable[[], Iterable[HeldProcess]]
    ) -> None:
        super().__init__(directory, hello=hello, note=note, running=running)
        self._mirror = Mirror(directory)
        #: The control streams: where the thread writes what comes from the keeper, and the other direction.
        self._streams: dict[int, tuple[socket.socket, _StreamEnd]] = {}
        self._stream_lock = threading.Lock()
        self.link.on_message = self._take
        self.link.on_cut = self._close_streams

    async def connect(self) -> socket.socket:
        peer = await self._opened()
        here, there = socket.socketpair()
        here.setblocking(False)
        there.setblocking(False)
        number = peer.next_rid()
        end = _StreamEnd(number, peer, self._end_stream)
        self._streams[number] = (there.dup(), end)
        try:
            found = await peer.call("control", {"hello": self._hello}, _OPEN_BUDGET, rid=number)
            self._keeper_pids = set(found["pids"])
            await self._loop.create_unix_connection(lambda: end, sock=there)
        except BaseException as failed:
            self._end_stream(number)
            for one in (here, there):
                one.close()
            if isinstance(failed, Unreachable):
                raise ConnectionError(failed.message) from failed
            raise
        return here

    async def connect_fd_store(self) -> socket.socket:
        """Never: the relay holds the descriptors, which cannot be passed to another machine."""
        await self._loop.create_future()
        raise AssertionError

    async def _begin(self, peer: RelayPeer) -> None:
        await super()._begin(peer)
        await peer.call("mirror", await asyncio.to_thread(self._mirror.sizes), _OPEN_BUDGET)

    def _take(self, reader: FrameReader, message: Message) -> bool:
        """In the thread that reads."""
        if "stream" not in message:
            return self._mirror.take(reader, message)
        view = memoryview(b"" if message.get("end") else message["raw"][0])
        while (stream := self._send(message["stream"], view)) is not None and (view := view[stream[1] :]):
            # Its number may be that of another file meanwhile: then this does not wake up.
            select.select([], [stream[0]], [], _LOOK_PAUSE)
        return True

    def _send(self, number: int, view: memoryview) -> tuple[int, int] | None:
        """Pass on what comes from the keeper: the descriptor and how much it took; None when the stream is closed."""
        with self._stream_lock:  # the loop closes them
            stream = self._streams.get(number)
            if stream is None:
                return None
            try:
                if not view:
                    stream[0].shutdown(socket.SHUT_WR)
                return stream[0].fileno(), stream[0].send(view) if view else 0
            except BlockingIOError:
                return stream[0].fileno(), 0
            except OSError:  # the daemon has closed it
                return None

    def _end_stream(self, number: int) -> None:
        with self._stream_lock:
            stream = self._streams.pop(number, None)
            if stream is not None:
                with suppress(OSError):
                    stream[0].shutdown(socket.SHUT_RDWR)
                stream[0].close()

    def _close_streams(self) -> None:
        for number, (_, end) in list(self._streams.items()):
            end.close()
            self._end_stream(number)
