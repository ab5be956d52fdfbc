"""What both ends of a connection use: bytes <-> frames, and the process at the other end as the kernel reports it.

A frame is a length (4 bytes, big-endian, at most MAX_FRAME), a kind (1 byte) and that many bytes: `J`, a JSON
object, or `B`, raw bytes that belong to the `J` frame before them. The first byte of a connection is therefore
always 0, which no HTTP request starts with: both are served on one socket.

The first request of a connection is `{"rid": n, "op": "hello", "version": PROTOCOL_VERSION, "client": RELEASE,
"session": S, "had": [ID], "strict": BOOL}`. `had` has ids of notifications that earlier replies contained; with
`strict`, only what belongs to the session can be seen. The reply has `version`, `daemon` (its release), `pid` and
`strict`.

A request is `{"rid": n, "op": NAME, ...fields}`; several may be under way on one connection. The reply is
`{"rid": n, "ok": {...}}` or `{"rid": n, "error": {"code", "message", "next", "data"}}`. An operation that streams sends
any number of `{"rid": n, "data": {"stream", "offset", "size"}}`, each followed by one `B` frame of that size, before
its `ok`. For an operation that uploads, the daemon sends any number of `{"rid": n, "want": COUNT}`: the client may send
that many more pieces, each `{"rid": n, "op": "data"}` and one `B` frame. An empty one is the end of the data.

`{"op": "cancel", "rid": n}` cancels a request; closing the connection cancels all of them.

A reply with `consumes` delivers the notifications that it names. The client confirms it with
`{"op": "got", "rid": n}`; they are then not delivered any more.
"""

from __future__ import annotations

import _socket
import errno
import os
import struct

import holdfast.light_json as light_json  # `from holdfast import …` would look the name up in the package first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Message: TypeAlias = dict[str, Any]
else:
    Message = dict  # `typing` costs more time to import than a whole conversation takes

#: What `hello` says: both ends must speak the same.
PROTOCOL_VERSION = 1
MAX_FRAME = (1 << 24) - 1

_HEAD = struct.Struct("!IB")
_JSON = ord("J")
_BYTES = ord("B")
#: Linux 6.5. The `socket` module of Python does not name it yet.
_SO_PEERPIDFD = 77


class FrameError(Exception):
    """The peer sent something that is no frame; the connection is of no further use."""


def encode(message: Message, dumps: Callable[[Message], bytes] | None = None) -> bytes:
    """`dumps` is a faster way to JSON."""
    body = light_json.dumps(message).encode() if dumps is None else dumps(message)
    if len(body) > MAX_FRAME:
        raise FrameError(f"a message holds {MAX_FRAME} bytes at most, this has {len(body)}")
    return _HEAD.pack(len(body), _JSON) + body


def encode_bytes(data: bytes) -> bytes:
    return _HEAD.pack(len(data), _BYTES) + data


class FrameDecoder:
    """Bytes in, messages and byte strings out, however the bytes are cut. `loads` is a faster way from JSON."""

    def __init__(self, loads: Callable[[bytes], Any] | None = None) -> None:
        self._buffer = bytearray()
        self._loads = loads or _loads

    def feed(self, data: bytes) -> list[Message | bytes]:
        buffer = self._buffer
        buffer += data
        frames: list[Message | bytes] = []
        at = 0
        while len(buffer) - at >= _HEAD.size:
            length, kind = _HEAD.unpack_from(buffer, at)
            if length > MAX_FRAME:
                raise FrameError(f"a frame of {length} bytes announced")
            body_at = at + _HEAD.size
            if len(buffer) - body_at < length:
                break
            body = bytes(buffer[body_at : body_at + length])
            frames.append(body if kind == _BYTES else self._parse(kind, body))
            at = body_at + length
        del buffer[:at]
        return frames

    def _parse(self, kind: int, body: bytes) -> Message:
        if kind != _JSON:
            raise FrameError(f"a frame of unknown kind {kind}")
        try:
            message = self._loads(body)
        except ValueError as broken:
            raise FrameError("a frame that is not JSON") from broken
        if not isinstance(message, dict):
            raise FrameError("a frame that is not an object")
        return message


def _loads(body: bytes) -> Any:
    return light_json.loads(body.decode())


def peer_credentials(sock: _socket.socket) -> tuple[int, int, int]:
    """Pid, uid and gid of the process that made the connection. It may have passed it to another one since."""
    pid, uid, gid = struct.unpack("3i", sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
    return pid, uid, gid


def peer_pidfd(sock: _socket.socket, pid: int) -> int | None:
    """A descriptor of that process, to be closed; None where it is gone.

    A kernel without SO_PEERPIDFD knows the pid alone: there it is the process that has the pid now.
    """
    try:
        return sock.getsockopt(_socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as refused:
        if refused.errno != errno.ENOPROTOOPT:
            return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
