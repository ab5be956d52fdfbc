"""One connection with the daemon, without I/O: questions become bytes, bytes become answers."""

from __future__ import annotations

from holdfast.errors import BadValue, from_wire
from holdfast.wire.frames import FrameDecoder, FrameError, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from holdfast.errors import HoldfastError
    from holdfast.wire.frames import Message

    Answer: TypeAlias = "Done | Failed | Output"

#: The most ids of notifications that a client keeps.
MOST_DELIVERED = 1000


class Done:
    """A question was answered; nothing more comes for it."""

    __slots__ = ("rid", "value")

    def __init__(self, rid: int, value: Message) -> None:
        self.rid = rid
        self.value = value


class Failed:
    """A question was answered with an error; nothing more comes for it."""

    __slots__ = ("rid", "error")

    def __init__(self, rid: int, error: HoldfastError) -> None:
        self.rid = rid
        self.error = error


class Output:
    """A piece of a process's output, as part of the answer to come. `offset` is that of its first byte."""

    __slots__ = ("rid", "stream", "offset", "data")

    def __init__(self, rid: int, stream: str, offset: int, data: bytes) -> None:
        self.rid = rid
        self.stream = stream
        self.offset = offset
        self.data = data

    def __repr__(self) -> str:
        return f"<Output {self.stream} {self.offset}..{self.end}>"

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


class ClientProtocol:
    """Numbers the requests and assembles the answers. Several requests may be in flight.

    `delivered` collects the ids of notifications that answers contained. The next connection sends them, because this
    daemon may die before they are acknowledged on disk.
    """

    def __init__(self, delivered: list[str] | None = None) -> None:
        self._delivered = delivered if delivered is not None else []
        self._decoder = FrameDecoder()
        self._last_rid = 0
        self._announced: Message | None = None

    def ask(self, op: str, arguments: Message) -> tuple[int, bytes]:
        """The number of the request, and the bytes to send. Raises BadValue for arguments that cannot be encoded."""
        rid = self._last_rid + 1
        try:
            request = encode({"rid": rid, "op": op, **arguments})
        except (TypeError, ValueError, RecursionError, FrameError) as failed:
            raise refusal(arguments, failed) from None
        self._last_rid = rid
        return rid, request

    def cancel(self, rid: int) -> bytes:
        """The bytes that cancel a request. Answers to it may still come."""
        return encode({"op": "cancel", "rid": rid})

    def confirmation(self, answer: Answer) -> bytes:
        """The bytes that confirm an answer with notifications; none for other answers."""
        if not isinstance(answer, Done) or not (ids := answer.value.get("consumes")):
            return b""
        self._delivered[:] = [*self._delivered, *ids][-MOST_DELIVERED:]
        return encode({"op": "got", "rid": answer.rid})

    def feed(self, data: bytes) -> list[Answer]:
        """The answers that are complete now. Raises FrameError when the peer sends something else."""
        return [answer for frame in self._decoder.feed(data) if (answer := self._understand(frame)) is not None]

    def _understand(self, frame: Message | bytes) -> Answer | None:
        if isinstance(frame, bytes):
            return self._output(frame)
        rid = frame.get("rid")
        if not isinstance(rid, int):
            return None  # a message type of a newer release
        if isinstance(value := frame.get("ok"), dict):
            return Done(rid, value)
        if isinstance(error := frame.get("error"), dict):
            return Failed(rid, from_wire(error))
        if isinstance(announced := frame.get("data"), dict):
            self._announced = {"rid": rid, **announced}
        return None

    def _output(self, data: bytes) -> Output:
        head, self._announced = self._announced, None
        if head is None:
            raise FrameError("bytes without an announcement")
        try:
            return Output(head["rid"], head["stream"], head["offset"], data)
        except KeyError as missing:
            raise FrameError(f"output announced without {missing}") from None


def refusal(arguments: Message, failed: Exception) -> BadValue:
    """The error for arguments that cannot be encoded."""
    for key, value in arguments.items():
        if isinstance(value, float) and value - value != 0:  # nan, inf
            return BadValue(f"{key} must be a finite number, not {value}", next="choose a number, or leave it out")
    return BadValue(f"cannot be sent: {failed}", next="check the types and sizes of the arguments")
