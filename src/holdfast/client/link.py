"""One connection to the daemon: the protocol without I/O, for every kind of client, and the blocking link."""

from __future__ import annotations

import _socket
import select
import time

from holdfast.client import launch
from holdfast.errors import BadValue, Unreachable, Unsupported, from_wire
from holdfast.version import VERSION as RELEASE
from holdfast.wire.frames import PROTOCOL_VERSION, FrameDecoder, FrameError, encode, encode_bytes, peer_credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from holdfast.errors import HoldfastError
    from holdfast.paths import Paths
    from holdfast.wire.frames import Message

    Answer: TypeAlias = "Done | Failed | Output | Want"

#: The most ids of notifications that a client keeps.
MOST_DELIVERED = 1000
#: A daemon that does not even greet within this time is stopped or hangs.
GREET_LIMIT = 15.0
#: A program that ends waits no longer for a daemon that hangs.
CONFIRM_LIMIT = 0.5
#: After this many cuts in a row, the request itself is assumed to end the daemon.
MAX_CUTS = 10
_GREETINGS = 5
_AGAIN = "holdfast daemon stop (detached processes go on), then try again"
_PIECE = 1 << 16


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


class Want:
    """The daemon takes so many more pieces of an upload."""

    __slots__ = ("rid", "count")

    def __init__(self, rid: int, count: int) -> None:
        self.rid = rid
        self.count = count


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

    def piece(self, rid: int, data: bytes) -> bytes:
        """The bytes that send a piece of an upload; an empty piece is its end."""
        return encode({"op": "data", "rid": rid}) + encode_bytes(data)

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
        if isinstance(count := frame.get("want"), int):
            return Want(rid, count)
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


class LinkCut(Unreachable):
    """The connection was cut before the reply. What was asked may or may not have been done."""


class DaemonStopped(Unreachable):
    """The daemon was stopped on purpose, and was not started again in time."""

    def __init__(self, paths: Paths) -> None:
        super().__init__(f"the daemon of {paths.home} was stopped", next="holdfast daemon start, then try again")


class Link:
    """A connection that has been greeted. Not for several threads at once. `delivered`: see ClientProtocol."""

    def __init__(
        self, sock: _socket.socket, session: str | None, delivered: list[str] | None = None, strict: bool = False
    ) -> None:
        self._sock = sock
        self._protocol = ClientProtocol(delivered)
        self._poll = select.poll()
        self._poll.register(sock.fileno(), select.POLLIN)
        #: False once it was cut, or has answers under way that no caller waits for.
        self.is_usable = True
        self.daemon = self._greet(session, delivered, strict)

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self.is_usable = False
        self._sock.close()

    def is_idle(self) -> bool:
        """Whether it can take the next question: still connected, with nothing left over from the last."""
        return self.is_usable and not self._is_readable(0)

    def ask(self, op: str, arguments: Message) -> int:
        """Send a question; its number. Raises BadValue, LinkCut."""
        rid, question = self._protocol.ask(op, arguments)
        self._send(question)
        return rid

    def cancel(self, rid: int) -> None:
        self._send(self._protocol.cancel(rid))

    def upload(self, rid: int, data: bytes) -> None:
        """Send a piece that the daemon wants (`Want`); an empty one is the end. Raises LinkCut."""
        self._send(self._protocol.piece(rid, data))

    def receive(self, timeout: float | None = None) -> list[Answer]:
        """What has come, after waiting for something; nothing when `timeout` ran out. Raises LinkCut."""
        if timeout is not None and not self._is_readable(timeout):
            return []
        try:
            data = self._sock.recv(_PIECE)
            answers = self._protocol.feed(data)
        except (OSError, FrameError) as cut:
            raise self._cut(cut) from cut
        if not data:
            raise self._cut("the daemon went away")
        self._say_got(answers)
        return answers

    def _say_got(self, answers: list[Answer]) -> None:
        if confirmations := b"".join(map(self._protocol.confirmation, answers)):
            try:
                self._send(confirmations)
            except LinkCut:
                return  # the answers are here; the next daemon gets the delivered ids

    def call(self, op: str, arguments: Message, limit: float | None = None) -> tuple[Message, list[Output]]:
        """Ask and wait for the answer. Raises what the daemon answered, and Unreachable after `limit` seconds."""
        rid = self.ask(op, arguments)
        until = None if limit is None else time.monotonic() + limit
        output: list[Output] = []
        while True:
            for answer in self.receive(None if until is None else max(0.0, until - time.monotonic())):
                if answer.rid != rid:
                    continue
                if isinstance(answer, Done):
                    return answer.value, output
                if isinstance(answer, Failed):
                    raise answer.error
                if isinstance(answer, Output):
                    output.append(answer)
            if until is not None and time.monotonic() >= until:
                raise self._unanswered(op)

    def _unanswered(self, op: str) -> Unreachable:
        self.is_usable = False
        return Unreachable(
            f"the daemon (pid {peer_credentials(self._sock)[0]}) does not answer {op!r}",
            next="it may be stopped or overloaded: holdfast daemon status",
        )

    def _greet(self, session: str | None, delivered: list[str] | None, strict: bool) -> Message:
        greeting, _ = self.call("hello", hello(session, delivered, strict), GREET_LIMIT)
        check_version(greeting, strict)
        return greeting

    def _send(self, data: bytes) -> None:
        try:
            self._sock.sendall(data)
        except OSError as cut:
            raise self._cut(cut) from cut

    def _cut(self, why: object) -> LinkCut:
        self.is_usable = False
        return LinkCut(f"the link to the daemon was cut: {why}")

    def _is_readable(self, timeout: float) -> bool:
        return bool(self._poll.poll(timeout * 1000))


def open_link(
    paths: Paths,
    session: str | None,
    delivered: list[str] | None = None,
    strict: bool = False,
    resume: float | None = None,
) -> Link:
    """A greeted connection; the daemon is started where there is none. Raises Unreachable, Denied, Unsupported.

    With `resume`, a daemon that was stopped is not started, but waited for: so many seconds, then raises DaemonStopped.
    """
    until = time.monotonic() + (resume or 0.0)

    def connect() -> _socket.socket:
        return launch.connect(paths) if resume is None else connect_again(paths, until)

    for _ in range(_GREETINGS - 1):
        try:
            return greet(connect(), session, delivered, strict)
        except LinkCut:  # it went away between the connect and the greeting: look again
            continue
    return greet(connect(), session, delivered, strict)


def connect_again(paths: Paths, until: float) -> _socket.socket:
    """A connection for a client that only waits: see `launch.reconnect`. Raises DaemonStopped when `until` is over."""
    while (sock := launch.reconnect(paths)) is None:
        if time.monotonic() >= until:
            raise DaemonStopped(paths)
        time.sleep(min(launch.STOPPED_PAUSE, max(0.0, until - time.monotonic())))
    return sock


def greet(sock: _socket.socket, session: str | None, delivered: list[str] | None = None, strict: bool = False) -> Link:
    try:
        return Link(sock, session, delivered, strict)
    except BaseException:
        sock.close()
        raise


def hello(session: str | None, delivered: list[str] | None, strict: bool = False) -> Message:
    greeting = {"version": PROTOCOL_VERSION, "client": RELEASE, "session": session}
    return {**greeting, **({"had": delivered} if delivered else {}), **({"strict": True} if strict else {})}


def check_version(greeting: Message, strict: bool = False) -> None:
    if strict and greeting.get("strict") is not True:
        raise Unsupported("the daemon is older and cannot bind a connection to its session", next=_AGAIN)
    if greeting.get("version") != PROTOCOL_VERSION:
        raise Unsupported(
            f"the daemon speaks version {greeting.get('version')}, this client speaks {PROTOCOL_VERSION}",
            next=_AGAIN,
        )
