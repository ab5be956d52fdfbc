"""A stream of bytes as numbered lines of text, for connections that carry only text.

    holdfast-text    comes first: what a login shell prints before is skipped
    N:BASE64         data. A line that comes twice is ignored the second time; one that is missing ends the stream
    N:               a sign of life: stdin ends when none came for a while, because it may stay open for ever
    N:.              the end of the stream
    +N               the other side has the lines up to N. Only a program on a terminal wants to know

A service that offers a terminal may drop a connection that is too slow, and what was not sent when the program ends. So
a program on a terminal has few lines under way, and ends when the other side has everything.
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

START = b"holdfast-text"
_END = b"."
_LINE_SIZE = 3 << 14
_LONGEST_LINE = 1 << 20
_READ_SIZE = 1 << 18
#: Lines that a program on a terminal may have under way.
_WINDOW = 10
#: Without a line for that long, the other side is gone.
SILENCE_LIMIT = 60.0
#: How long a program on a terminal waits at its end for the other side.
_LAST_BUDGET = 10.0


class TextEncoder:
    def __init__(self) -> None:
        self.number = 0
        """Of the last line."""

    def encode(self, data: bytes) -> bytes:
        """The lines of these bytes; without any, the sign of life."""
        pieces = [data[at : at + _LINE_SIZE] for at in range(0, max(len(data), 1), _LINE_SIZE)]
        return b"".join(self._line(base64.b64encode(piece)) for piece in pieces)

    def end(self) -> bytes:
        return self._line(_END)

    def _line(self, content: bytes) -> bytes:
        self.number += 1
        start = b"\n%s\n" % START if self.number == 1 else b""
        return b"%s%d:%s\n" % (start, self.number, content)


class TextDecoder:
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._has_begun = False
        self.number = 0
        """Of the last line."""
        self.received = 0
        """The number of the last line that the other side has."""
        self.has_ended = False

    def feed(self, data: bytes) -> bytes:
        """The bytes of the lines that are complete. Raises ConnectionError when one is missing or broken."""
        self._buffer += data
        *lines, rest = bytes(self._buffer).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise ConnectionError("a line that is too long")
        self._buffer = bytearray(rest)
        return b"".join(self._decoded(line.strip(b"\r")) for line in lines)

    def confirm(self) -> bytes:
        """What the other side needs to know that the lines have come."""
        return b"+%d\n" % self.number

    def _decoded(self, line: bytes) -> bytes:
        if not self._has_begun or not line:
            self._has_begun = self._has_begun or line == START
            return b""
        try:
            if line.startswith(b"+"):
                self.received = max(self.received, int(line))
                return b""
            number, data = line.split(b":")
            is_end = data == _END
            found, content = int(number), b"" if is_end else base64.b64decode(data, validate=True)
        except (ValueError, binascii.Error):
            raise ConnectionError(f"a line that is not of the stream: {line[:80]!r}") from None
        if found <= self.number:
            return b""
        if found != self.number + 1:
            raise ConnectionError(f"line {self.number + 1} is missing")
        self.number = found
        self.has_ended = self.has_ended or is_end
        return content


class _Carrier:
    """Carries bytes over the text of two descriptors, in two threads."""

    def __init__(self, text_in: int, text_out: int, is_terminal: bool) -> None:
        self._text_in, self._text_out, self._is_terminal = text_in, text_out, is_terminal
        self._encoder, self._decoder = TextEncoder(), TextDecoder()
        self._changed = threading.Condition()
        self._is_over = False
        if is_terminal:
            write_all(text_out, self._encoder.encode(b""))  # from now on it can be written to

    def decode(self, target: int) -> None:
        decoder, is_open = self._decoder, True
        with suppress(OSError):
            while select.select([self._text_in], [], [], SILENCE_LIMIT)[0]:
                if not (text := os.read(self._text_in, _READ_SIZE)):
                    break
                data = decoder.feed(text)
                if is_open:
                    write_all(target, data)
                if decoder.has_ended and is_open:
                    is_open = False
                    os.close(target)
                with self._changed:
                    self._changed.notify_all()
        if is_open:
            os.close(target)
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def encode(self, source: int) -> None:
        with suppress(OSError):
            while data := os.read(source, _LINE_SIZE if self._is_terminal else _READ_SIZE):
                write_all(self._text_out, self._encoder.encode(data))
                self._wait(_WINDOW, None)
            write_all(self._text_out, self._encoder.end())
            self._wait(0, _LAST_BUDGET)
        os.close(source)

    def _wait(self, window: int, budget: float | None) -> None:
        """Until the other side has all lines but so many, or is gone."""
        if self._is_terminal:
            least = self._encoder.number - window
            with self._changed:
                self._changed.wait_for(lambda: self._decoder.received >= least or self._is_over, budget)


@contextmanager
def over_text() -> Iterator[None]:
    """Within, stdin and stdout are streams of bytes, which threads carry over the text of those outside."""
    text_in, text_out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    is_terminal = os.isatty(text_in)
    if is_terminal:
        import tty

        tty.setraw(text_in)
        with open(os.devnull, "wb") as nothing:  # stderr would be in the midst of the lines
            os.dup2(nothing.fileno(), 2)
    carrier = _Carrier(text_in, text_out, is_terminal)
    from_peer, to_reader = os.pipe2(os.O_CLOEXEC)
    from_writer, to_peer = os.pipe2(os.O_CLOEXEC)
    threading.Thread(target=carrier.decode, args=(to_reader,), name="text-in", daemon=True).start()
    output = threading.Thread(target=carrier.encode, args=(from_writer,), name="text-out", daemon=True)
    output.start()
    for pipe, fd in ((from_peer, 0), (to_peer, 1)):
        os.dup2(pipe, fd)
        os.close(pipe)
    try:
        yield
    finally:
        os.dup2(2, 1)  # the last end of the pipe
        output.join()


def write_all(target: int, data: bytes) -> None:
    """Raises OSError."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            select.select([], [target], [])
