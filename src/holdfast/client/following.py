"""Reading output over as many links as it takes, without I/O: what to ask, and what to make of the answers."""

from __future__ import annotations

from holdfast.client.conversation import Done, Failed
from holdfast.client.link import PATIENCE
from holdfast.client.process import Process
from holdfast.errors import Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from holdfast.client.conversation import Answer, Output
    from holdfast.client.happenings import EventsFollowed
    from holdfast.client.noticing import NoticesFollowed
    from holdfast.wire.frames import Message

    #: Whatever a reading may be of.
    Followed: TypeAlias = "Following | EventsFollowed | NoticesFollowed"
    #: Sends a question and returns its number.
    AskNow: TypeAlias = Callable[[str, Message], int]


class Cursor:
    """Where a reader of one stream stands, and what it has to ask for to go on from there.

    `asked` holds `from`, `lines`, `line` and `bytes` as in the operation `logs`.
    """

    def __init__(self, process: str, stream: str = "out", follow: bool = False, **asked: int | None) -> None:
        self.stream = stream
        self.follow = follow
        self._process = process
        self._asked = {key.rstrip("_"): value for key, value in asked.items() if value is not None}
        self._next: int | None = None
        self._left = self._asked.get("bytes")
        #: What the daemon said at the end; None before.
        self.answer: Message | None = None

    def question(self) -> Message:
        where: Message = {"process": self._process, "stream": self.stream, "follow": self.follow}
        if self._next is None or "line" in self._asked:  # lines are counted from the top: asked again, and skipped
            return {**where, **self._asked}
        return {**where, "from": self._next, **({} if self._left is None else {"bytes": self._left})}

    def stop_at(self, offset: int | None) -> None:
        """Follow no longer; read on to `offset` at most."""
        self.follow = False
        if offset is not None and self._next is not None:
            rest = max(0, offset - self._next)
            self._left = rest if self._left is None else min(rest, self._left)

    def take(self, answer: Answer) -> Output | None:
        """The next piece, unless it was read before. Raises what the daemon answered."""
        if isinstance(answer, Failed):
            raise answer.error
        if isinstance(answer, Done):
            self.answer = answer.value
            return None
        if self._next is not None and answer.offset < self._next:
            answer.data = answer.data[self._next - answer.offset :]
            answer.offset = self._next
        if not answer.data:
            return None
        self._next = answer.end
        if self._left is not None:
            self._left -= len(answer.data)
        return answer


class Following:
    """Some streams of one process, read to their end; or, with `to_exit`, until the process ended and all that it
    wrote was read, whoever still holds its output open.

    With `consumes`, an owner who has seen the end that way is not told of it again.
    """

    def __init__(self, process: str, cursors: Sequence[Cursor], to_exit: bool, consumes: bool = False) -> None:
        self.cursors = cursors
        #: The process after its end, with `to_exit`.
        self.ended: Process | None = None
        self._process = process
        self._to_exit = to_exit
        self._consumes = consumes
        self._asked: dict[int, Cursor | None] = {}
        self._cuts = 0

    @property
    def is_over(self) -> bool:
        return all(cursor.answer is not None for cursor in self.cursors) and not self._waits

    @property
    def _waits(self) -> bool:
        return self._to_exit and self.ended is None

    def begin(self, ask: AskNow) -> None:
        """Ask for all that is missing, on a new link."""
        self._asked = {ask("logs", cursor.question()): cursor for cursor in self.cursors if cursor.answer is None}
        if self._waits:
            self._ask_wait(ask)

    def note_cut(self, cut: Unreachable) -> None:
        """The link was cut. Raises it when that happens again and again."""
        self._asked = {}
        self._cuts += 1
        if self._cuts > PATIENCE:
            raise cut

    def take(self, answer: Answer, ask: AskNow, cancel: Callable[[int], None]) -> Output | None:
        """The next piece, if the answer holds one; asks what it makes necessary. Raises what the daemon answered."""
        if answer.rid not in self._asked:
            return None
        cursor = self._asked[answer.rid]
        if cursor is None:
            self._take_wait(answer, ask, cancel)
            return None
        piece = cursor.take(answer)
        if piece is not None:
            self._cuts = 0
        return piece

    def _ask_wait(self, ask: AskNow) -> None:
        asked: Message = {"processes": [self._process], "mode": "all", "until": "exit"}
        self._asked[ask("wait", asked if self._consumes else {**asked, "consume": False})] = None

    def _take_wait(self, answer: Answer, ask: AskNow, cancel: Callable[[int], None]) -> None:
        if isinstance(answer, Failed):
            raise answer.error
        if not isinstance(answer, Done):
            return
        process = Process(answer.value["processes"][0])
        if process.status != "ended":  # the longest wait that is granted is over
            self._ask_wait(ask)
            return
        self.ended = process
        reach = None if process.split else max(process.output_bytes, process.exit_offset or 0)
        for rid, cursor in list(self._asked.items()):
            if cursor is not None and cursor.answer is None:
                cancel(rid)
                del self._asked[rid]
                cursor.stop_at(reach)
                self._asked[ask("logs", cursor.question())] = cursor
