"""Following something over as many connections as it takes: output, events, notifications, approvals, matches.

A `Followed` says what to ask and what to make of the answers, without I/O. `Reading` drives one with blocking calls,
`aio_link.AsyncReading` with asyncio. After a cut, a driver connects again and the `Followed` goes on where it stood.
"""

from __future__ import annotations

import time

from holdfast import light_json
from holdfast.client.link import MAX_CUTS, DaemonStopped, Done, Failed, LinkCut, Output
from holdfast.client.process import Process
from holdfast.errors import Unreachable
from holdfast.wire.frames import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Generic, Self, TypeAlias, TypeVar

    from holdfast.client.calls import Ask
    from holdfast.client.link import Answer, Link
    from holdfast.client.results.approval import Approval
    from holdfast.client.results.notification import Notification
    from holdfast.client.results.search import Found

    T = TypeVar("T")
    #: Sends a question and returns its number.
    AskNow: TypeAlias = Callable[[str, Message], int]
else:  # `typing` costs more time to import than a short call takes
    T = None

    class Generic:
        def __class_getitem__(cls, item):
            return cls


#: A reader that is closed early keeps its connection if the daemon has ended the requests within this time.
_SETTLE_LIMIT = 0.05


class Followed(Generic[T]):
    """One question whose answer comes in parts. `items` makes of a part what the reader is given."""

    #: Whether its connection may serve other requests afterwards, and did so before.
    shares_link = False
    #: The process after its end, where that is waited for.
    ended: Process | None = None
    #: What a search found so far.
    found: Found | None = None

    def __init__(self, op: str, arguments: Message) -> None:
        self._op = op
        self._arguments = arguments
        self._rid = 0
        self._cuts = 0
        #: The reply at the end; None before.
        self.answer: Message | None = None

    @property
    def is_over(self) -> bool:
        return self.answer is not None

    def begin(self, ask: AskNow) -> None:
        """Ask for everything that is missing, on a new connection."""
        self._rid = ask(self._op, self._arguments)

    def note_cut(self, cut: Unreachable) -> None:
        """The connection was cut. Raises it when that happens again and again."""
        self._cuts += 1
        if self._cuts > MAX_CUTS:
            raise cut

    def take(self, answer: Answer, ask: AskNow, cancel: Callable[[int], None]) -> list[T]:
        """The items of an answer; asks what it makes necessary. Raises what the daemon answered."""
        if answer.rid != self._rid:
            return []
        if isinstance(answer, Failed):
            raise answer.error
        self._cuts = 0
        if isinstance(answer, Done):
            self.answer = answer.value
            return []
        return self.items(answer) if isinstance(answer, Output) else []

    def items(self, part: Output) -> list[T]:
        raise NotImplementedError

    def time_left(self) -> float | None:
        """How long to wait for the next item; None without a limit."""
        return None

    def acknowledgement(self, item: T) -> Ask | None:
        """What to ask when the reader wants the one after this item."""
        return None

    def unanswered(self) -> set[int]:
        """The questions under way; nothing more comes when they were answered."""
        raise NotImplementedError


class Cursor:
    """The position of a reader of one stream, and its next request.

    `asked` holds `from`, `lines`, `line`, `bytes`, `from_time` and `to_time` as in the operation `logs`.
    """

    def __init__(self, process: str, stream: str = "out", follow: bool = False, **asked: float | None) -> None:
        self.stream = stream
        self.follow = follow
        self._process = process
        self._asked: Message = {key.rstrip("_"): value for key, value in asked.items() if value is not None}
        self._next: int | None = None
        self._left: int | None = self._asked.get("bytes")
        #: The reply at the end; None before.
        self.answer: Message | None = None

    def question(self) -> Message:
        where: Message = {"process": self._process, "stream": self.stream, "follow": self.follow}
        if self._next is None or "line" in self._asked:  # lines are counted from the first: asked again, and skipped
            return {**where, **self._asked}
        left = {"bytes": self._left, "to_time": self._asked.get("to_time")}
        return {**where, "from": self._next, **{key: value for key, value in left.items() if value is not None}}

    def take(self, answer: Answer) -> list[Output]:
        """The next piece, unless it was read before. Raises what the daemon answered."""
        if isinstance(answer, Failed):
            raise answer.error
        if isinstance(answer, Done):
            self.answer = answer.value
            return []
        if not isinstance(answer, Output):
            return []
        if self._next is not None and answer.offset < self._next:
            answer.data = answer.data[self._next - answer.offset :]
            answer.offset = self._next
        if not answer.data:
            return []
        self._next = answer.end
        if self._left is not None:
            self._left -= len(answer.data)
        return [answer]


class FollowedOutput(Followed[Output]):
    """Some streams of one process, read to their end.

    With `to_exit`, until the process has ended and all that it wrote was read, even if a descendant holds its output
    open. With `consumes`, an owner session that sees the end this way is not notified of it.
    """

    shares_link = True

    def __init__(self, cursors: Sequence[Cursor], to_exit: bool, consumes: bool = False) -> None:
        super().__init__("logs", {"until": "exit", "consume": consumes} if to_exit else {})
        self._cursors = cursors
        self._to_exit = to_exit
        self._asked: dict[int, Cursor] = {}

    @property
    def is_over(self) -> bool:
        return all(cursor.answer is not None for cursor in self._cursors)

    def begin(self, ask: AskNow) -> None:
        left = [cursor for cursor in self._cursors if cursor.answer is None]
        self._asked = {ask("logs", {**cursor.question(), **self._arguments}): cursor for cursor in left}

    def note_cut(self, cut: Unreachable) -> None:
        self._asked = {}
        super().note_cut(cut)

    def take(self, answer: Answer, ask: AskNow, cancel: Callable[[int], None]) -> list[Output]:
        if answer.rid not in self._asked:
            return []
        cursor = self._asked[answer.rid]
        pieces = cursor.take(answer)
        self.answer = self._cursors[0].answer
        if pieces:
            self._cuts = 0
        if cursor.answer is not None and self._to_exit:
            self.ended = Process(cursor.answer["process"])
        return pieces

    def unanswered(self) -> set[int]:
        return {rid for rid, cursor in self._asked.items() if cursor.answer is None}


class FollowedEvents(Followed[Message]):
    """Events. `since` moves on with each part, so that none comes twice."""

    def items(self, part: Output) -> list[Message]:
        self._arguments = {**self._arguments, "since": part.offset}
        return _parsed(part)


class FollowedApprovals(Followed["Approval"]):
    """Approvals that are pending, then each that changes. After a cut, pending ones come again."""

    def items(self, part: Output) -> list[Approval]:
        from holdfast.client.results.approval import Approval

        return [Approval(fields) for fields in _parsed(part)]


class FollowedNotices(Followed["Notification"]):
    """Notifications of a session, one at a time: each is acknowledged when the next is requested."""

    def __init__(self, session: str, timeout: float | None) -> None:
        super().__init__("notices", {"session": session, "take": True, "window": 1})
        self._timeout = timeout
        self._idle_since: float | None = None

    def items(self, part: Output) -> list[Notification]:
        from holdfast.client.results.notification import Notification

        # An empty part: nothing is pending now.
        self._idle_since = None if part.data else time.monotonic()
        return [Notification(fields) for fields in _parsed(part)]

    def time_left(self) -> float | None:
        if self._timeout is None or self._idle_since is None:
            return None
        return max(0.0, self._idle_since + self._timeout - time.monotonic())

    def acknowledgement(self, item: Notification) -> Ask | None:
        from holdfast.client.calls import QUICK, Ask

        return Ask("ack", {"ids": [item.id]}, limit=QUICK)


def _parsed(part: Output) -> list[Message]:
    return [light_json.loads(line) for line in part.data.decode().splitlines()]


class ReadingState(Generic[T]):
    """What a stream has shown besides its items, for blocking and async iterators."""

    _followed: Followed[T]

    @property
    def answer(self) -> Message | None:
        """The reply at the end of the (first) stream; None before."""
        return self._followed.answer

    @property
    def ended(self) -> Process | None:
        """The process after its end, where that was waited for."""
        return self._followed.ended

    @property
    def found(self) -> Found:
        """Of a search: the sums of what it found, without the matches."""
        assert self._followed.found is not None
        return self._followed.found


class Reading(ReadingState[T]):
    """An iterator over the items of a stream. To leave it early, close it or use it in `with`."""

    #: Whether a daemon that was stopped on purpose is started again for it; else it is waited for.
    _starts_stopped = False

    def __init__(
        self,
        open_link: Callable[[float | None], Link],
        followed: Followed[T],
        call: Callable[[Ask], object] | None = None,
        give_back: Callable[[Link], None] | None = None,
    ) -> None:
        """`give_back` takes the link for other requests, where it can be used again."""
        self._open_link = open_link
        self._give_back = give_back
        self._followed = followed
        self._call = call
        self._link: Link | None = None
        self._was_open = False
        self._items: list[T] = []
        self._last: T | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        if self._last is not None and self._call is not None:
            if (ask := self._followed.acknowledgement(self._last)) is not None:
                self._call(ask)
            self._last = None
        while not self._items:
            left = None if self.is_over else self._followed.time_left()
            self._items = [] if self.is_over else self.receive(left)
            if not self._items and (self.is_over or left == 0.0):
                self.close()
                raise StopIteration
        self._last = self._items.pop(0)
        return self._last

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_over(self) -> bool:
        return self._followed.is_over

    def fileno(self) -> int:
        """To be polled: readable when `receive` has something. Changes after a cut."""
        while True:
            try:
                return self._connected().fileno()
            except LinkCut as cut:
                self._mend(cut)

    def close(self) -> None:
        """The item that was given last is not acknowledged by this."""
        link, self._link = self._link, None
        if link is None:
            return
        if self._give_back is not None and self._is_settled(link):
            self._give_back(link)
        else:
            link.close()

    def _is_settled(self, link: Link) -> bool:
        """Cancel what is under way, and take what still comes of it: whether nothing more will come."""
        if not link.is_usable:
            return False
        rids = self._followed.unanswered()
        until = time.monotonic() + _SETTLE_LIMIT
        try:
            for rid in rids:
                link.cancel(rid)
            while rids and (left := until - time.monotonic()) > 0:
                rids -= {answer.rid for answer in link.receive(left) if isinstance(answer, (Done, Failed))}
        except LinkCut:
            return False
        return not rids

    def receive(self, timeout: float | None = None) -> list[T]:
        """The next items; none when `timeout` ran out, or when the answer has none."""
        if self._items:
            items, self._items = self._items, []
            return items
        try:
            link = self._connected(timeout)
            items = [item for answer in link.receive(timeout) for item in self._take(answer, link)]
        except LinkCut as cut:
            self._mend(cut)
            return []
        except DaemonStopped:
            return []
        if self.is_over:
            self.close()
        return items

    def _take(self, answer: Answer, link: Link) -> list[T]:
        return self._followed.take(answer, link.ask, link.cancel)

    def _mend(self, cut: LinkCut) -> None:
        self.close()
        self._followed.note_cut(cut)

    def _connected(self, timeout: float | None = None) -> Link:
        """Raises DaemonStopped where it was stopped meanwhile, and was not started within `timeout`."""
        if self._link is None:
            waits = self._was_open and not self._starts_stopped
            self._link = self._open_link((float("inf") if timeout is None else timeout) if waits else None)
            self._was_open = True
            self._begin(self._link)
        return self._link

    def _begin(self, link: Link) -> None:
        self._followed.begin(link.ask)
