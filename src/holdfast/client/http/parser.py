"""HTTP/1.1 responses from bytes, in pieces of any size. No I/O."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

_MOST_HEAD = 64 << 10


class InvalidHttp(Exception):
    """The peer sent something that is no HTTP response. The connection cannot be used any more."""


class ResponseParser:
    """One response. `status` and `headers` are there after the head, `is_over` after the body."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.is_over = False
        self._buffer = bytearray()
        self._out: list[bytes] = []
        self._steps = self._run()
        next(self._steps)

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection can take another request."""
        return self.is_over and not self._buffer and self.headers.get("connection", "").lower() != "close"

    def feed(self, data: bytes) -> list[bytes]:
        """The pieces of the body that these bytes hold. Raises InvalidHttp."""
        self._buffer += data
        if not self.is_over:
            self._steps.send(None)
        out, self._out = self._out, []
        return out

    def _run(self) -> Generator[None, None, None]:
        status = 100
        while 100 <= status < 200:  # informational responses come first
            status = yield from self._head()
        self.status = status
        length = self.headers.get("content-length")
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            yield from self._chunks()
        elif length is not None or status in (204, 304):
            yield from self._exactly(_number(length or "0", 10))
        else:
            raise InvalidHttp("a response without an end")
        self.is_over = True
        yield

    def _head(self) -> Generator[None, None, int]:
        line = (yield from self._line()).split(None, 2)
        if len(line) < 2 or not line[0].startswith("HTTP/1.") or len(line[1]) != 3:
            raise InvalidHttp("no HTTP/1.1 response")
        self.headers = {}
        while header := (yield from self._line()):
            name, _, value = header.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        return _number(line[1], 10)

    def _chunks(self) -> Generator[None, None, None]:
        while size := _number((yield from self._line()).partition(";")[0], 16):
            yield from self._exactly(size)
            yield from self._line()
        while (yield from self._line()):
            pass

    def _exactly(self, size: int) -> Generator[None, None, None]:
        while size:
            if not self._buffer:
                yield
                continue
            piece = bytes(self._buffer[:size])
            del self._buffer[: len(piece)]
            size -= len(piece)
            self._out.append(piece)

    def _line(self) -> Generator[None, None, str]:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _MOST_HEAD:
                raise InvalidHttp("a line without an end")
            yield
        line = self._buffer[:end].decode("latin-1").rstrip("\r")
        del self._buffer[: end + 1]
        return line


class EventParser:
    """Server-sent events from text: pairs of kind and data. Comments and ids are left out."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        self._buffer += data
        *blocks, rest = bytes(self._buffer).split(b"\n\n")
        self._buffer = bytearray(rest)
        return [event for block in blocks if (event := _event(block.decode())) is not None]


def _event(block: str) -> tuple[str, str] | None:
    kind, data = "message", []
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        if name == "event":
            kind = value.removeprefix(" ")
        elif name == "data":
            data.append(value.removeprefix(" "))
    return (kind, "\n".join(data)) if data else None


def _number(text: str, base: int) -> int:
    try:
        value = int(text.strip(), base)
    except ValueError:
        value = -1
    if value < 0:
        raise InvalidHttp(f"{text[:20]!r} is no length")
    return value
