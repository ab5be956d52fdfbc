"""One blocking connection to the daemon."""

from __future__ import annotations

import _socket
import select
import time

from holdfast.client import launch
from holdfast.client.protocol import ClientProtocol, Done, Failed, Output
from holdfast.errors import Unreachable, Unsupported
from holdfast.peers import peer_credentials
from holdfast.version import VERSION as RELEASE
from holdfast.wire.frames import PROTOCOL_VERSION, FrameError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.protocol import Answer
    from holdfast.paths import Paths
    from holdfast.wire.frames import Message

#: A daemon that does not even greet within this time is stopped or hangs.
GREET_LIMIT = 15.0
#: After this many cuts in a row, the request itself is assumed to end the daemon.
MAX_CUTS = 10
_GREETINGS = 5
_AGAIN = "holdfast daemon stop (detached processes go on), then try again"
_PIECE = 1 << 18


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
