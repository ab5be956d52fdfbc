"""Following a process's output while sending it input, signals and sizes."""

from __future__ import annotations

import time

from holdfast.client.calls import base64
from holdfast.client.link import Done, Failed, LinkCut, Output
from holdfast.client.reading import Cursor, FollowedOutput, Reading
from holdfast.errors import NotNow, StdinFull, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client.link import Answer, Link
    from holdfast.client.process import Process
    from holdfast.wire.frames import Message

_PIECE = 64 << 10
#: How long to wait for a process to read some of its input before writing more.
_PAUSE = 0.05
#: The same while the place of the process does not answer.
_UNREACHABLE_PAUSE = 0.5


class PendingInput:
    """Bytes on their way to a process: one piece at a time, so that they stay in order. No I/O.

    `accepted` is how far the process's input is known to reach. Where it is known, a piece whose answer was lost with
    the link is sent again, and arrives once.
    """

    def __init__(self, process: str, accepted: int | None) -> None:
        self._process = process
        self._accepted = accepted
        self._waiting = bytearray()
        self._eof_waits = False
        self._under_way: tuple[bytes, bool] | None = None
        self._is_repeat = False
        self._rid: int | None = None
        self._not_before = 0.0
        #: Whether the process takes no more.
        self.is_shut = False
        #: Why the place of the process does not answer; None while it does. What was added is kept and sent later.
        self.trouble: str | None = None

    def add(self, data: bytes) -> None:
        self._waiting += data

    def add_eof(self) -> None:
        self._eof_waits = True

    @property
    def can_take(self) -> bool:
        return not self.is_shut and len(self._waiting) < _PIECE

    @property
    def is_empty(self) -> bool:
        return self.is_shut or not (self._waiting or self._eof_waits or self._under_way)

    def due_in(self, now: float) -> float | None:
        """When `question` will have something, where only time has to pass."""
        return None if self._rid is not None or self.is_empty else max(0.0, self._not_before - now)

    def question(self, now: float) -> Message | None:
        """What to ask now; None while an answer is under way or nothing is left."""
        if self._rid is not None or self.is_empty or now < self._not_before:
            return None
        if self._under_way is None and self.trouble is not None and self._accepted is None:
            self._under_way = b"", False  # learn first how far its input reaches: then nothing is lost
        if self._under_way is None:
            piece = bytes(self._waiting[:_PIECE])
            del self._waiting[:_PIECE]
            self._under_way = piece, self._eof_waits and not self._waiting
        data, eof = self._under_way
        at = self._accepted if self._is_repeat else None  # others may write as well, so only where it must be exact
        return {"process": self._process, "data": base64(data), "enter": False, "eof": eof, "at": at}

    def asked(self, rid: int) -> None:
        self._rid = rid

    def note_cut(self) -> None:
        self._rid = None
        self._is_repeat = self._under_way is not None and self._accepted is not None
        if not self._is_repeat:  # it may have arrived: better lost than doubled
            self._under_way = None

    def take(self, answer: Answer, now: float) -> bool:
        """Whether the answer belongs to this input."""
        if self._rid is None or answer.rid != self._rid:
            return False
        self._rid = None
        if isinstance(answer, Failed) and isinstance(answer.error, StdinFull):
            self._not_before = now + _PAUSE
        elif isinstance(answer, Failed) and isinstance(answer.error, Unreachable):
            self.trouble = answer.error.message
            self._not_before = now + _UNREACHABLE_PAUSE
            self.note_cut()
        elif isinstance(answer, Failed):
            if not isinstance(answer.error, NotNow):
                raise answer.error
            self.is_shut = True
        elif isinstance(answer, Done):
            self._done(answer.value)
        return True

    def _done(self, value: Message) -> None:
        assert self._under_way is not None
        self._eof_waits = self._eof_waits and not self._under_way[1]
        self._under_way = None
        self._is_repeat = False
        self.trouble = None
        if isinstance(accepted := value.get("accepted"), int):
            self._accepted = accepted
        self.is_shut = value.get("status") == "already_exited"


class InteractiveReading(Reading[Output]):
    """`receive` gives the output until the process has ended and all that it wrote was read.

    What is sent meanwhile is not waited for; a signal that is lost with the link is not sent again. With `answers`, the
    output is shown on a terminal that answers the queries of the process, in place of the daemon. With `consumes`, an
    owner session that sees the end here is not notified of it.
    """

    #: A user waits for what it does.
    _starts_stopped = True

    def __init__(
        self,
        open_link: Callable[[float | None], Link],
        process: Process,
        offsets: dict[str, int],
        accepted: int | None = None,
        answers: bool = False,
        consumes: bool = False,
    ) -> None:
        cursors = [Cursor(process.id, stream, True, from_=offset) for stream, offset in offsets.items()]
        super().__init__(open_link, FollowedOutput(cursors, to_exit=True, consumes=consumes))
        self._first = cursors[0]
        self.input = PendingInput(process.id, accepted)
        self._id = process.id
        self._answers = answers

    def signal(self, number: int) -> None:
        self._post("kill", {"processes": [self._id], "signal": number})

    def stop(self) -> None:
        """End it, with SIGTERM and then SIGKILL. Does not wait; `ended` is set afterwards."""
        self._post("kill", {"processes": [self._id]})

    def force(self) -> None:
        """Kill it and everything that it started. Does not wait; `ended` is set afterwards."""
        self._post("kill", {"processes": [self._id], "grace": 0})

    def resize(self, cols: int, rows: int) -> None:
        self._post("resize", {"process": self._id, "cols": cols, "rows": rows})

    def push_input(self) -> None:
        """Send what waits, as far as the process takes it."""
        question = self.input.question(time.monotonic())
        if question is not None and (rid := self._post("send", question)) is not None:
            self.input.asked(rid)

    def _post(self, op: str, arguments: Message) -> int | None:
        """Send a request without waiting. Returns its number; None when the link was cut and replaced meanwhile."""
        try:
            return self._connected().ask(op, arguments)
        except LinkCut as cut:
            self._mend(cut)
            return None

    def _begin(self, link: Link) -> None:
        if self._answers:
            start = self._first.question()["from"]
            link.ask("attached", {"process": self._id, "from": start})
        super()._begin(link)

    def _take(self, answer: Answer, link: Link) -> list[Output]:
        if self.input.take(answer, time.monotonic()):
            return []
        return super()._take(answer, link)

    def _mend(self, cut: LinkCut) -> None:
        self.input.note_cut()
        super()._mend(cut)
