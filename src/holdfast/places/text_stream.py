"""A stream of bytes as numbered lines of text, for connections that carry only text.

A line may come twice: the second one is ignored. A line that is missing ends the stream. An empty line of data is a
sign of life: stdin ends when none came for a while, because it may stay open when the other side is gone.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Comes first: what a login shell prints before is skipped.
_START = b"holdfast-text"
_LINE_SIZE = 3 << 14
_LONGEST_LINE = 1 << 20
_READ_SIZE = 1 << 18
#: Without a line for that long, the other side is gone.
SILENCE_LIMIT = 60.0


class TextEncoder:
    def __init__(self) -> None:
        self._number = 0

    def encode(self, data: bytes) -> bytes:
        """The lines of these bytes; without any, the sign of life."""
        lines = [b"", _START, b""] if self._number == 0 else [b""]
        for at in range(0, max(len(data), 1), _LINE_SIZE):
            self._number += 1
            lines.insert(-1, b"%d:%s" % (self._number, base64.b64encode(data[at : at + _LINE_SIZE])))
        return b"\n".join(lines)


class TextDecoder:
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._has_begun = False
        self._number = 0

    def feed(self, data: bytes) -> bytes:
        """The bytes of the lines that are complete. Raises ConnectionError when one is missing or broken."""
        self._buffer += data
        *lines, rest = bytes(self._buffer).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise ConnectionError("a line that is too long")
        self._buffer = bytearray(rest)
        return b"".join(self._decoded(line.strip(b"\r")) for line in lines)

    def _decoded(self, line: bytes) -> bytes:
        if not self._has_begun or not line:
            self._has_begun = self._has_begun or line == _START
            return b""
        try:
            number, data = line.split(b":")
            found, content = int(number), base64.b64decode(data, validate=True)
        except (ValueError, binascii.Error):
            raise ConnectionError(f"a line that is not of the stream: {line[:80]!r}") from None
        if found <= self._number:
            return b""
        if found != self._number + 1:
            raise ConnectionError(f"line {self._number + 1} is missing")
        self._number = found
        return content


@contextmanager
def over_text() -> Iterator[None]:
    """Within, stdin and stdout are streams of bytes, which threads carry over the text of those outside."""
    text_in, text_out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    from_peer, to_reader = os.pipe2(os.O_CLOEXEC)
    from_writer, to_peer = os.pipe2(os.O_CLOEXEC)
    threading.Thread(target=_decode, args=(text_in, to_reader), name="text-in", daemon=True).start()
    output = threading.Thread(target=_encode, args=(from_writer, text_out), name="text-out", daemon=True)
    output.start()
    for pipe, fd in ((from_peer, 0), (to_peer, 1)):
        os.dup2(pipe, fd)
        os.close(pipe)
    try:
        yield
    finally:
        os.dup2(2, 1)  # the last end of the pipe
        output.join()


def _decode(source: int, target: int) -> None:
    decoder = TextDecoder()
    with suppress(OSError):
        while select.select([source], [], [], SILENCE_LIMIT)[0] and (data := os.read(source, _READ_SIZE)):
            write_all(target, decoder.feed(data))
    os.close(target)


def _encode(source: int, target: int) -> None:
    encoder = TextEncoder()
    with suppress(OSError):
        while data := os.read(source, _READ_SIZE):
            write_all(target, encoder.encode(data))
    os.close(source)


def write_all(target: int, data: bytes) -> None:
    """Raises OSError."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            select.select([], [target], [])
